"""What is already there: schedulers and other tools' logs, as events."""
