//! Decoding rows of other servers' databases.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use worldwire_core::Field as _;
use worldwire_core::json::Json;
use worldwire_uru::types::{TermStr, Uuid};
use worldwire_uru::vault::{NodeBlob, NodeType, VaultNode};

use super::{Cell, MigrationError, Result, Row, plain, text_order};

/// Calls a macro with all fields of a node except its number, with their columns in dirtsand's
/// database and the types of the columns.
macro_rules! node_columns {
    ($use:ident) => {
        $use! {
            create_time "CreateTime" unsigned, modify_time "ModifyTime" unsigned,
            create_age_name "CreateAgeName" string, create_age_uuid "CreateAgeUuid" uuid,
            creator_acct "CreatorUuid" uuid, creator_id "CreatorIdx" unsigned,
            node_type "NodeType" kind,
            int32_1 "Int32_1" signed, int32_2 "Int32_2" signed,
            int32_3 "Int32_3" signed, int32_4 "Int32_4" signed,
            uint32_1 "Uint32_1" unsigned, uint32_2 "Uint32_2" unsigned,
            uint32_3 "Uint32_3" unsigned, uint32_4 "Uint32_4" unsigned,
            uuid_1 "Uuid_1" uuid, uuid_2 "Uuid_2" uuid, uuid_3 "Uuid_3" uuid, uuid_4 "Uuid_4" uuid,
            string64_1 "String64_1" string, string64_2 "String64_2" string,
            string64_3 "String64_3" string, string64_4 "String64_4" string,
            string64_5 "String64_5" string, string64_6 "String64_6" string,
            istring64_1 "IString64_1" string, istring64_2 "IString64_2" string,
            text_1 "Text_1" string, text_2 "Text_2" string,
            blob_1 "Blob_1" blob, blob_2 "Blob_2" blob
        }
    };
}
pub(super) use node_columns;

/// A row, with the name of its table for errors.
pub(super) struct At<'r> {
    pub(super) table: &'static str,
    pub(super) row: &'r Row,
}

impl At<'_> {
    pub(super) fn wrong(&self, problem: impl Into<String>) -> MigrationError {
        let row = match self.row.get("idx") {
            Some(Cell::Number(row)) => *row,
            _ => 0,
        };
        MigrationError::Row { table: self.table, row, problem: problem.into() }
    }

    fn cell(&self, column: &str) -> Option<&Cell> {
        self.row.get(column).filter(|cell| **cell != Cell::Null)
    }

    fn misfit(&self, column: &str, wanted: &str) -> MigrationError {
        self.wrong(format!("{column}: must be {wanted}"))
    }

    pub(super) fn number(&self, column: &str) -> Result<Option<i64>> {
        match self.cell(column) {
            None => Ok(None),
            Some(Cell::Number(number)) => Ok(Some(*number)),
            Some(_) => Err(self.misfit(column, "a number")),
        }
    }

    /// An unsigned number, which PostgreSQL stores as signed.
    pub(super) fn unsigned(&self, column: &str) -> Result<Option<u32>> {
        let fits = |number: i64| {
            let negative = i32::try_from(number).map(i32::cast_unsigned);
            u32::try_from(number).or(negative).map_err(|_| self.misfit(column, "a 32-bit number"))
        };
        self.number(column)?.map(fits).transpose()
    }

    pub(super) fn id(&self, column: &str) -> Result<u32> {
        let id = self.unsigned(column)?.filter(|id| *id != 0);
        id.ok_or_else(|| self.misfit(column, "a number above 0"))
    }

    pub(super) fn signed(&self, column: &str) -> Result<Option<i32>> {
        let fits =
            |number| i32::try_from(number).map_err(|_| self.misfit(column, "a 32-bit number"));
        self.number(column)?.map(fits).transpose()
    }

    pub(super) fn text(&self, column: &str) -> Result<Option<String>> {
        match self.cell(column) {
            None => Ok(None),
            Some(Cell::Text(text)) => Ok(Some(text.clone())),
            Some(_) => Err(self.misfit(column, "a text")),
        }
    }

    /// A UUID, stored as text, or as 16 bytes in the order of the text.
    pub(super) fn uuid(&self, column: &str) -> Result<Option<Uuid>> {
        let wrong = || self.misfit(column, "a UUID");
        match self.cell(column) {
            None => Ok(None),
            Some(Cell::Text(text)) => {
                let json = Json::from(&**text);
                Uuid::from_json((&json).into()).map(Some).map_err(|_| wrong())
            }
            Some(Cell::Bytes(bytes)) => {
                let id = bytes.as_slice().try_into().map_err(|_| wrong())?;
                Ok(Some(Uuid(text_order(id))))
            }
            Some(Cell::Number(_) | Cell::Null) => Err(wrong()),
        }
    }

    /// Bytes, stored either as they are or as base64.
    pub(super) fn blob(&self, column: &str) -> Result<Option<NodeBlob<'static>>> {
        match self.cell(column) {
            None => Ok(None),
            Some(Cell::Bytes(bytes)) => Ok(Some(NodeBlob::new(bytes.clone()))),
            Some(Cell::Text(text)) => {
                let bytes = STANDARD.decode(text.split_whitespace().collect::<String>());
                bytes
                    .map(|bytes| Some(NodeBlob::new(bytes)))
                    .map_err(|_| self.misfit(column, "base64"))
            }
            Some(_) => Err(self.misfit(column, "a blob")),
        }
    }

    fn string(&self, column: &str) -> Result<Option<TermStr<'static>>> {
        Ok(self.text(column)?.map(|text| TermStr::from(&*text)))
    }

    fn kind(&self, column: &str) -> Result<Option<NodeType>> {
        let kind = self.unsigned(column)?.ok_or_else(|| self.misfit(column, "a type"))?;
        Ok(Some(NodeType(kind)))
    }

    /// A vault node. NULL becomes an absent field, which differs from zero.
    pub(super) fn node(&self) -> Result<VaultNode<'static>> {
        macro_rules! node {
            ($($field:ident $column:literal $read:ident),*) => {
                VaultNode {
                    node_id: Some(self.id("idx")?),
                    $($field: self.$read(&plain($column))?),*
                }
            };
        }
        Ok(node_columns!(node))
    }
}
