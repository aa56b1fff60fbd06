"""A budget and data in; a shape, other advice, repairs and the experiment that tests it out."""
