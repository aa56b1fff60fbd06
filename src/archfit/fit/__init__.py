"""Records in; crossing points, redundancies and laws with intervals out."""
