//! ObjectProperty.
