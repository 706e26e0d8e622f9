//! VarSync: variables that the members of a game share.

/// The number of UTF-16 units of names and values, with the terminator.
pub const TEXT_UNITS: usize = 256;

/// Messages from a member.
pub mod client {
    use worldwire_core::{Double, messages};

    use super::TEXT_UNITS;
    use crate::games::GameText;

    messages! {
        /// Messages of VarSync from a member.
        pub enum ClientMessage<'a>: "VarSync", Client;

        /// Changes a text variable. Only the owner may do this.
        3 SetStringVar<'a> {
            /// The variable's ID.
            var "var": u32,
            /// The new value.
            value "value": GameText<'a, TEXT_UNITS>,
        }

        /// Changes a number variable. Only the owner may do this.
        4 SetNumericVar {
            /// The variable's ID.
            var "var": u32,
            /// The new value.
            value "value": Double,
        }

        /// Requests all variables. `AllVarsSent` follows the last one.
        5 RequestAllVars {}

        /// Creates a text variable, unless one with this name exists.
        6 CreateStringVar<'a> {
            /// The name.
            name "name": GameText<'a, TEXT_UNITS>,
            /// The initial value.
            value "value": GameText<'a, TEXT_UNITS>,
        }

        /// Creates a number variable, unless one with this name exists.
        7 CreateNumericVar<'a> {
            /// The name.
            name "name": GameText<'a, TEXT_UNITS>,
            /// The initial value.
            value "value": Double,
        }
    }
}

/// Messages from the server.
pub mod server {
    use worldwire_core::{Double, messages};

    use super::TEXT_UNITS;
    use crate::games::GameText;

    messages! {
        /// Messages of VarSync from the server.
        pub enum ServerMessage<'a>: "VarSync", Server;

        /// A text variable changed. Sent to all members, including the sender of the change.
        4 StringVarChanged<'a> {
            /// The variable's ID.
            var "var": u32,
            /// The new value.
            value "value": GameText<'a, TEXT_UNITS>,
        }

        /// A number variable changed. Sent to all members, including the sender of the change.
        5 NumericVarChanged {
            /// The variable's ID.
            var "var": u32,
            /// The new value.
            value "value": Double,
        }

        /// All variables have been sent. The first owner creates variables when this arrives.
        6 AllVarsSent {}

        /// A text variable exists.
        7 StringVarCreated<'a> {
            /// The name.
            name "name": GameText<'a, TEXT_UNITS>,
            /// The variable's ID: 1, 2, 3 and so on, in the order of creation.
            var "var": u32,
            /// The value.
            value "value": GameText<'a, TEXT_UNITS>,
        }

        /// A number variable exists.
        8 NumericVarCreated<'a> {
            /// The name.
            name "name": GameText<'a, TEXT_UNITS>,
            /// The variable's ID: 1, 2, 3 and so on, in the order of creation.
            var "var": u32,
            /// The value.
            value "value": Double,
        }
    }
}
