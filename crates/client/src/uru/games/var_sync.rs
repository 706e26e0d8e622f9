//! VarSync, as a player sees it.

use std::collections::BTreeMap;

use worldwire_core::{Double, Error, Result};
use worldwire_uru::games::message::var_sync::client::{
    ClientMessage, CreateNumericVar, CreateStringVar, RequestAllVars, SetNumericVar, SetStringVar,
};
use worldwire_uru::games::message::var_sync::server::ServerMessage;

use super::PlayError;
use super::playing::{Playing, finite, text};

/// VarSync: variables that the members of a game share.
#[derive(Clone, Debug, Default)]
pub struct VarSyncGame {
    variables: BTreeMap<u32, Variable>,
    is_complete: bool,
}

/// A variable.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// The name.
    pub name: String,
    /// The value.
    pub value: VarValue,
}

/// The value of a variable. Its type never changes.
#[derive(Clone, Debug, PartialEq)]
pub enum VarValue {
    /// A finite number.
    Number(f64),
    /// Text of at most 255 UTF-16 units.
    Text(String),
}

/// The maximum number of variables kept; far more than servers allow.
const MAX_VARIABLES: usize = 4_096;

impl VarSyncGame {
    /// The variables with their IDs, in the order of their creation.
    pub fn variables(&self) -> impl ExactSizeIterator<Item = (u32, &Variable)> {
        self.variables.iter().map(|(id, variable)| (*id, variable))
    }

    /// Whether the server has sent all variables.
    pub(super) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// # Errors
    /// A limit error if there are too many variables.
    pub(super) fn take(&mut self, message: &ServerMessage<'_>) -> Result<()> {
        match message {
            ServerMessage::StringVarCreated(created) => {
                let value = VarValue::Text(created.value.to_text());
                self.keep(created.var, created.name.to_text(), value)
            }
            ServerMessage::NumericVarCreated(created) => {
                let value = VarValue::Number(created.value.0);
                self.keep(created.var, created.name.to_text(), value)
            }
            ServerMessage::StringVarChanged(changed) => {
                self.change(changed.var, VarValue::Text(changed.value.to_text()));
                Ok(())
            }
            ServerMessage::NumericVarChanged(changed) => {
                self.change(changed.var, VarValue::Number(changed.value.0));
                Ok(())
            }
            ServerMessage::AllVarsSent(_) => {
                self.is_complete = true;
                Ok(())
            }
        }
    }

    fn keep(&mut self, id: u32, name: String, value: VarValue) -> Result<()> {
        if self.variables.len() >= MAX_VARIABLES && !self.variables.contains_key(&id) {
            let found = MAX_VARIABLES as u64 + 1;
            return Err(Error::limit("variables of a game", MAX_VARIABLES as u64, found));
        }
        self.variables.insert(id, Variable { name, value });
        Ok(())
    }

    fn change(&mut self, id: u32, value: VarValue) {
        if let Some(variable) = self.variables.get_mut(&id) {
            variable.value = value;
        }
    }

    fn named(&self, name: &str) -> Option<(u32, &Variable)> {
        self.variables().find(|(_, variable)| variable.name == name)
    }
}

impl Playing<'_, VarSyncGame> {
    /// Creates a variable. If one with this name exists, the server sends that one.
    pub fn create(&mut self, name: &str, value: &VarValue) -> Result<(), PlayError> {
        if name.is_empty() {
            let (field, wanted) = ("the name", "at least one character");
            return Err(PlayError::Value { field, wanted, found: "empty".to_owned() });
        }
        let name = text("the name", name)?;
        match value {
            VarValue::Number(number) => {
                let value = Double(finite("the value", *number)?);
                self.send(ClientMessage::from(CreateNumericVar { name, value }))
            }
            VarValue::Text(value) => {
                let value = text("the value", value)?;
                self.send(ClientMessage::from(CreateStringVar { name, value }))
            }
        }
    }

    /// Sets a variable for everybody. Only the owner may do this.
    pub fn set(&mut self, name: &str, value: &VarValue) -> Result<(), PlayError> {
        let Some((var, variable)) = self.state.named(name) else {
            return Err(PlayError::NoVariable(name.to_owned()));
        };
        if !self.is_owner() {
            return Err(PlayError::NotOwner(self.owner));
        }
        let message = match (&variable.value, value) {
            (VarValue::Number(_), VarValue::Number(number)) => {
                let value = Double(finite("the value", *number)?);
                ClientMessage::from(SetNumericVar { var, value })
            }
            (VarValue::Text(_), VarValue::Text(value)) => {
                let value = text("the value", value)?;
                ClientMessage::from(SetStringVar { var, value })
            }
            (was, _) => {
                let kind = match was {
                    VarValue::Number(_) => "a number",
                    VarValue::Text(_) => "text",
                };
                return Err(PlayError::WrongKind { name: name.to_owned(), kind });
            }
        };
        self.send(message)
    }

    /// Requests all variables again. After them, the server sends `AllVarsSent`.
    pub fn request_all(&mut self) -> Result<(), PlayError> {
        self.send(ClientMessage::from(RequestAllVars {}))
    }
}
