//! TERA: the definition language, maps, messages, and the connection.
