//! Positions in RPC messages: 100 units are one metre, and y is the height.

use worldwire_core::{Double, Float, record};

record! {
    /// A position in single precision.
    pub struct FloatPoint {
        x "x": Float,
        /// The height.
        y "y": Float,
        z "z": Float,
    }
}

record! {
    /// A position in double precision.
    pub struct DoublePoint {
        x "x": Double,
        /// The height.
        y "y": Double,
        z "z": Double,
    }
}
