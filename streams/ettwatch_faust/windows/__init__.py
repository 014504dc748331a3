"""Rolling windows on Kafka: a thin Faust app over `ettwatch_core.windows`."""
