//! The rules of VarSync.

use worldwire_core::Double;

use super::GameText;
use super::message::var_sync::TEXT_UNITS;
use super::message::var_sync::client::ClientMessage;
use super::message::var_sync::server::{
    AllVarsSent, NumericVarChanged, NumericVarCreated, ServerMessage, StringVarChanged,
    StringVarCreated,
};
use super::refused::{Refused, RefusedClass, check_finite, check_text};
use super::table::Table;

type Text = GameText<'static, TEXT_UNITS>;

#[derive(Clone, Debug)]
enum Value {
    Text(Text),
    Number(Double),
}

#[derive(Debug)]
struct Variable {
    name: Text,
    value: Value,
}

/// Variables, numbered from 1 in the order of creation.
#[derive(Debug, Default)]
pub(super) struct VarSync {
    variables: Vec<Variable>,
}

impl VarSync {
    pub(super) fn receive(
        &mut self,
        table: &mut Table<'_>,
        from: u32,
        message: ClientMessage<'_>,
        bound: usize,
    ) -> Result<(), Refused> {
        use worldwire_core::Field as _;
        match message {
            ClientMessage::SetStringVar(set) => {
                self.set(table, from, set.var, Value::Text(set.value.into_owned()))
            }
            ClientMessage::SetNumericVar(set) => {
                self.set(table, from, set.var, Value::Number(set.value))
            }
            ClientMessage::RequestAllVars(_) => {
                self.send_all(table, from);
                Ok(())
            }
            ClientMessage::CreateStringVar(create) => {
                let value = Value::Text(create.value.into_owned());
                self.create(table, from, create.name.into_owned(), value, bound)
            }
            ClientMessage::CreateNumericVar(create) => {
                let value = Value::Number(create.value);
                self.create(table, from, create.name.into_owned(), value, bound)
            }
        }
    }

    /// Changes a variable. Only the owner may do this, and a variable keeps its type.
    fn set(
        &mut self,
        table: &mut Table<'_>,
        from: u32,
        id: u32,
        value: Value,
    ) -> Result<(), Refused> {
        if !table.is_owner(from) {
            let error = worldwire_core::Error::invalid("only the owner may change variables");
            return Err(Refused::new(RefusedClass::NotOwner, error));
        }
        let at = usize::try_from(id).unwrap_or(usize::MAX).checked_sub(1);
        let Some(variable) = at.and_then(|at| self.variables.get_mut(at)) else {
            return Err(Refused::state("there is no variable with this ID"));
        };
        let changed: ServerMessage<'_> = match (&variable.value, &value) {
            (Value::Text(_), Value::Text(text)) => {
                StringVarChanged { var: id, value: text.clone() }.into()
            }
            (Value::Number(_), Value::Number(number)) => {
                NumericVarChanged { var: id, value: *number }.into()
            }
            _ => return Err(Refused::state("the variable has the other type")),
        };
        table.send_all(changed);
        variable.value = value;
        Ok(())
    }

    /// Creates a variable. If one with this name exists, its value is sent to the sender only.
    fn create(
        &mut self,
        table: &mut Table<'_>,
        from: u32,
        name: Text,
        value: Value,
        bound: usize,
    ) -> Result<(), Refused> {
        let known = self.variables.iter().position(|variable| variable.name == name);
        if let Some(at) = known {
            if let Some(created) = self.created(at) {
                table.send(from, created);
            }
            return Ok(());
        }
        if self.variables.len() >= bound {
            return Err(Refused::limit("variables of a game", bound));
        }
        self.variables.push(Variable { name, value });
        if let Some(created) = self.created(self.variables.len() - 1) {
            table.send_all(created);
        }
        Ok(())
    }

    fn created(&self, at: usize) -> Option<ServerMessage<'static>> {
        let variable = self.variables.get(at)?;
        let var = u32::try_from(at + 1).ok()?;
        let name = variable.name.clone();
        Some(match &variable.value {
            Value::Text(text) => StringVarCreated { name, var, value: text.clone() }.into(),
            Value::Number(number) => NumericVarCreated { name, var, value: *number }.into(),
        })
    }

    /// Sends all variables to one member.
    fn send_all(&self, table: &mut Table<'_>, to: u32) {
        for at in 0..self.variables.len() {
            if let Some(created) = self.created(at) {
                table.send(to, created);
            }
        }
        table.send(to, ServerMessage::from(AllVarsSent {}));
    }

    /// Sends the variables to a joining member, unless it is the owner.
    pub(super) fn before_joined(&self, table: &mut Table<'_>, joiner: u32) {
        if !table.is_owner(joiner) {
            self.send_all(table, joiner);
        }
    }

    /// The owner's client creates variables as soon as all existing ones have been sent, so by then
    /// it must know that it has joined the game and owns it.
    pub(super) fn after_joined(&self, table: &mut Table<'_>, joiner: u32) {
        if table.is_owner(joiner) {
            self.send_all(table, joiner);
        }
    }
}

/// Checks the values in a message.
pub(super) fn check(message: &ClientMessage<'_>) -> Result<(), Refused> {
    let check_name = |name: &GameText<'_, TEXT_UNITS>| match name.is_empty() {
        true => Err(Refused::value("name", "a name", "an empty string")),
        false => check_text("name", name),
    };
    match message {
        ClientMessage::SetStringVar(set) => check_text("value", &set.value),
        ClientMessage::SetNumericVar(set) => check_finite("value", set.value.0),
        ClientMessage::RequestAllVars(_) => Ok(()),
        ClientMessage::CreateStringVar(create) => {
            check_name(&create.name)?;
            check_text("value", &create.value)
        }
        ClientMessage::CreateNumericVar(create) => {
            check_name(&create.name)?;
            check_finite("value", create.value.0)
        }
    }
}
