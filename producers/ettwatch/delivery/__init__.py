"""How events get from the spool folder to Kafka. Imported only where brokers are named; kafka-python only to send."""

__all__: list[str] = []
