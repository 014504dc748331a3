"""What shortens the time around training, each piece usable alone in anybody's trainer; see docs/remedies."""
