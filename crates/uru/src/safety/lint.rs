//! What is odd about a net message.
