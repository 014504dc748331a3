"""The demo: a real job that starts, trains, dies and recovers, and the report of where its time went."""
