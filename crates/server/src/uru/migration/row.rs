//! Decoding rows of other servers' databases.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use worldwire_core::Field as _;
use worldwire_core::json::Json;
use worldwire_uru::types::{TermStr, Uuid};
use worldwire_uru::vault::{NodeBlob, NodeType, VaultNode};

use super::{Cell, MigrationError, Result, Row, text_order};

/// A row, with its table for errors.
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
            u32::try_from(number)
                .or(negative)
                .map_err(|_| self.misfit(column, "a number of 32 bits"))
        };
        self.number(column)?.map(fits).transpose()
    }

    pub(super) fn id(&self, column: &str) -> Result<u32> {
        let id = self.unsigned(column)?.filter(|id| *id != 0);
        id.ok_or_else(|| self.misfit(column, "a number above 0"))
    }

    pub(super) fn signed(&self, column: &str) -> Result<Option<i32>> {
        let fits =
            |number| i32::try_from(number).map_err(|_| self.misfit(column, "a number of 32 bits"));
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

    /// Bytes, stored as they are or as base64.
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

    /// A vault node. NULL becomes an absent field, which differs from zero.
    pub(super) fn node(&self) -> Result<VaultNode<'static>> {
        let string =
            |column| Ok::<_, MigrationError>(self.text(column)?.map(|text| TermStr::from(&*text)));
        let kind = self.unsigned("nodetype")?.ok_or_else(|| self.misfit("nodetype", "a type"))?;
        Ok(VaultNode {
            node_id: Some(self.id("idx")?),
            create_time: self.unsigned("createtime")?,
            modify_time: self.unsigned("modifytime")?,
            create_age_name: string("createagename")?,
            create_age_uuid: self.uuid("createageuuid")?,
            creator_acct: self.uuid("creatoruuid")?,
            creator_id: self.unsigned("creatoridx")?,
            node_type: Some(NodeType(kind)),
            int32_1: self.signed("int321")?,
            int32_2: self.signed("int322")?,
            int32_3: self.signed("int323")?,
            int32_4: self.signed("int324")?,
            uint32_1: self.unsigned("uint321")?,
            uint32_2: self.unsigned("uint322")?,
            uint32_3: self.unsigned("uint323")?,
            uint32_4: self.unsigned("uint324")?,
            uuid_1: self.uuid("uuid1")?,
            uuid_2: self.uuid("uuid2")?,
            uuid_3: self.uuid("uuid3")?,
            uuid_4: self.uuid("uuid4")?,
            string64_1: string("string641")?,
            string64_2: string("string642")?,
            string64_3: string("string643")?,
            string64_4: string("string644")?,
            string64_5: string("string645")?,
            string64_6: string("string646")?,
            istring64_1: string("istring641")?,
            istring64_2: string("istring642")?,
            text_1: string("text1")?,
            text_2: string("text2")?,
            blob_1: self.blob("blob1")?,
            blob_2: self.blob("blob2")?,
        })
    }
}
