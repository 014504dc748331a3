"""The monitor as a program: a made-up fleet to look at, and where its settings come from."""
