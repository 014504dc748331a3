"""The sink: what the workers publish on Kafka, into ClickHouse, in large batches."""
