//! One thing at a time.
