//! Prompts: messages of a request as the model's template has them.

use std::sync::Arc;

use rocmforge_models::chat::{Conversation, End, Message, Role};
use rocmforge_models::tokenizer::Piece;
use serde_json::Value;

use crate::error::{ApiError, Kind};
use crate::registry::Lease;

/// A conversation to answer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chat {
    pub(crate) messages: Vec<Message>,
    /// Variables of the template; their names are ours, never the client's.
    pub(crate) variables: Vec<(&'static str, Value)>,
    /// The last message is one of the model, which it goes on with.
    pub(crate) continues: bool,
}

/// Messages in the JSON of the OpenAI API.
pub(crate) fn messages(list: &[Value]) -> Result<Vec<Message>, ApiError> {
    if list.is_empty() {
        return Err(ApiError::field("messages", "there is no message"));
    }
    for part in list
        .iter()
        .filter_map(|message| message.get("content")?.as_array())
        .flatten()
    {
        let kind = part.get("type").and_then(Value::as_str).unwrap_or("text");
        if !matches!(kind, "text" | "input_text" | "output_text" | "refusal") {
            return Err(ApiError::not_supported(
                "messages",
                format!("a part of type {kind}: the model takes text only"),
            ));
        }
    }
    Ok(list.iter().map(Message::from_json).collect::<Result<_, _>>()?)
}

impl Chat {
    /// The prompt, in pieces: what users wrote stays text, whatever control tokens it spells.
    pub(crate) async fn render(self, lease: &Arc<Lease>) -> Result<Vec<Piece>, ApiError> {
        let lease = Arc::clone(lease);
        // A template may work for a second.
        let render = tokio::task::spawn_blocking(move || {
            let Some(template) = &lease.loaded().template else {
                let text = format!(
                    "the model {} has no chat template: it was not made for conversations",
                    lease.name()
                );
                return Err(ApiError::invalid(text));
            };
            let is_last_own = self
                .messages
                .last()
                .is_some_and(|message| message.role == Role::Assistant);
            let conversation = Conversation {
                variables: &self.variables,
                end: match self.continues && is_last_own {
                    true => End::Content,
                    false => End::Answer,
                },
                ..Conversation::new(&self.messages)
            };
            Ok(template.render_pieces(&conversation, lease.handle().tokenizer())?)
        });
        let rendered = render.await;
        rendered.unwrap_or_else(|_| Err(ApiError::new(Kind::Internal, "the template could not be rendered")))
    }
}
