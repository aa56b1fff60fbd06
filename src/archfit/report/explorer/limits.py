"""What the explorer takes, and no more."""

MOST_BODY_BYTES = 10**6
MOST_HEAD_BYTES = 32 * 1024  # request line and headers; a config.json of 10 kB fits into a link
MOST_TEXT = 400  # characters of a value; the longest size that can be meant has 400 digits
MOST_SECONDS = 2.0  # of computing
WALL_SECONDS = 15.0  # until an answer is there: 2 s of computing on a machine with others to serve
PROCESSES = {"answers": 2, "bounds": 1, "charts": 1}
MOST_WAITING = {"answers": 256, "bounds": 16, "charts": 16}  # requests in line for a process
WAIT_SECONDS = 5.0  # in that line
REQUEST_SECONDS = 20.0  # from the first byte of a request to the last of its answer
IDLE_SECONDS = 5  # of an open connection without a request
MOST_CONNECTIONS = 512
CACHED_BYTES = {"answers": 16 * 10**6, "bounds": 4 * 10**6, "charts": 12 * 10**6}
