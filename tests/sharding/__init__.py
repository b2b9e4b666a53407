"""Meshes, the sharding engine and shard_map."""
