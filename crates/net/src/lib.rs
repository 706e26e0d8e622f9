//! Sockets for connection machines.
