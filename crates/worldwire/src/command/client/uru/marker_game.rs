//! Marker games, and the vault nodes through which players find and share them.

use serde_json::{Value as Json, json};
use worldwire_client::uru::games::PlayError;
use worldwire_client::uru::{ClientError, Result, VaultMirror};
use worldwire_uru::games::message::marker::MarkerGameType;
use worldwire_uru::types::{NetError, Uuid};
use worldwire_uru::vault::{NodeType, StandardFolder, VaultNode};

use super::session::Session;

impl Session<'_> {
    /// Creates a marker game. Like game clients, also creates a MarkerGame node with the template
    /// and the name among the player's journals.
    pub(super) async fn create_marker_game(
        &mut self,
        name: &str,
        marker_type: MarkerGameType,
    ) -> Result<Vec<Json>> {
        let (mut values, template) = self.age()?.create_markers(name, marker_type).await?;
        let player = self.player;
        let auth = self.auth().await?;
        let mirror = VaultMirror::fetch(auth, player).await?;
        let journals = mirror.nodes().find(|(_, node)| {
            node.node_type == Some(NodeType::Folder)
                && node.int32_1 == Some(StandardFolder::AgeJournals.0)
        });
        let error = NetError::VaultNodeNotFound;
        let request = "create-marker-game";
        let (journals, _) = journals.ok_or(ClientError::Refused { request, error })?;
        let node = VaultNode {
            node_type: Some(NodeType::MarkerGame),
            uuid_1: Some(template),
            text_1: Some(name.into()),
            ..VaultNode::default()
        };
        let node = auth.create_node(&node).await?;
        auth.add_node(journals, node, player).await?;
        self.made = Some(node);
        values.push(json!({"template": template.to_string(), "name": name, "node": node}));
        Ok(values)
    }

    /// Opens a marker game by its template or by the name of a MarkerGame node that the player has.
    pub(super) async fn open_marker_game(&mut self, name: &str) -> Result<Vec<Json>> {
        let template = match Uuid::parse(name) {
            Some(template) => template,
            None => self.template_named(name).await?,
        };
        self.age()?.open_markers(template).await
    }

    /// The template of a marker game below the player's node, including those in the inbox.
    async fn template_named(&mut self, name: &str) -> Result<Uuid> {
        let player = self.player;
        let mirror = VaultMirror::fetch(self.auth().await?, player).await?;
        let is_it = |node: &VaultNode<'_>| {
            node.node_type == Some(NodeType::MarkerGame)
                && node.text_1.as_ref().is_some_and(|text| text.to_text() == name)
        };
        let named = mirror.nodes().filter(|(_, node)| is_it(node));
        let mut templates: Vec<Uuid> = named.filter_map(|(_, node)| node.uuid_1).collect();
        // Several nodes can name the same game.
        templates.sort_by_key(|template| template.0);
        templates.dedup();
        match templates[..] {
            [template] => Ok(template),
            [] => {
                let (request, error) =
                    ("no marker game has this name", NetError::VaultNodeNotFound);
                Err(ClientError::Refused { request, error })
            }
            [..] => {
                let (name, templates) = (name.to_owned(), templates);
                Err(PlayError::Ambiguous { name, templates }.into())
            }
        }
    }
}
