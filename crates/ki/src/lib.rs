//! KI (Wizard101, Pirate101): DML messages and tables, frames, control messages, sessions, and
//! the secrets of the login.
