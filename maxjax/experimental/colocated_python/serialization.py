"""Libraries look here for details of JAX's implementation; nothing is serialized for a call."""

DeviceList = tuple
