"""Any source in (text, FASTA, images, series, ABC, tokens ...); token shards and statistics out."""
