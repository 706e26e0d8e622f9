//! MxO (The Matrix Online): distributed objects, and the connection around them.
