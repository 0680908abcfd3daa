//! Template sources: where configurations keep them and the special tokens.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::SPECIAL_TOKENS;

/// What is read of a `tokenizer_config.json`; what else it holds is passed over and takes no memory.
#[derive(Default, Deserialize)]
pub(super) struct Config<'a> {
    #[serde(borrow)]
    chat_template: Option<&'a RawValue>,
    #[serde(borrow)]
    bos_token: Option<&'a RawValue>,
    #[serde(borrow)]
    eos_token: Option<&'a RawValue>,
    #[serde(borrow)]
    unk_token: Option<&'a RawValue>,
    #[serde(borrow)]
    sep_token: Option<&'a RawValue>,
    #[serde(borrow)]
    pad_token: Option<&'a RawValue>,
    #[serde(borrow)]
    cls_token: Option<&'a RawValue>,
    #[serde(borrow)]
    mask_token: Option<&'a RawValue>,
}

/// One of several templates.
#[derive(Deserialize)]
struct Named {
    name: String,
    template: String,
}

/// A special token with its properties.
#[derive(Deserialize)]
struct Token {
    content: String,
}

impl<'a> Config<'a> {
    /// Reads the JSON.
    pub(super) fn parse(text: &'a str) -> serde_json::Result<Self> {
        serde_json::from_str(text)
    }

    /// The template: a text, or the one named `default` in a list.
    pub(super) fn template(&self) -> serde_json::Result<Option<String>> {
        let Some(json) = self.chat_template.map(RawValue::get) else {
            return Ok(None);
        };
        if json.starts_with('[') {
            let named: Vec<Named> = serde_json::from_str(json)?;
            let default = named.into_iter().find(|named| named.name == "default");
            return Ok(default.map(|named| named.template));
        }
        serde_json::from_str(json)
    }

    /// The texts of the special tokens, in the order of [`SPECIAL_TOKENS`]: each a text, or an object that holds it.
    pub(super) fn tokens(&self) -> [Option<String>; SPECIAL_TOKENS.len()] {
        let tokens = [
            self.bos_token,
            self.eos_token,
            self.unk_token,
            self.sep_token,
            self.pad_token,
            self.cls_token,
            self.mask_token,
        ];
        tokens.map(|token| {
            let json = token?.get();
            let text = serde_json::from_str(json);
            text.or_else(|_| serde_json::from_str(json).map(|token: Token| token.content))
                .ok()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_and_tokens_have_two_forms_each() {
        let text = r#"{"bos_token": "<s>", "eos_token": {"content": "</s>", "lstrip": false}, "unk_token": null, "other": [[[]]],
                       "chat_template": [{"name": "tool_use", "template": "t"}, {"name": "default", "template": "d\u00e9"}]}"#;
        let config = Config::parse(text).unwrap();
        assert_eq!(config.template().unwrap().as_deref(), Some("d\u{e9}"));
        let tokens = config.tokens();
        assert_eq!(tokens[..3], [Some("<s>".to_owned()), Some("</s>".to_owned()), None]);
        let config = Config::parse(r#"{"chat_template": "x"}"#).unwrap();
        assert_eq!(config.template().unwrap().as_deref(), Some("x"));
        let config = Config::parse(r#"{"chat_template": null}"#).unwrap();
        assert_eq!(config.template().unwrap(), None);
        assert!(Config::parse(r#"{"chat_template": 5}"#).unwrap().template().is_err());
        assert!(Config::parse(r#"{"chat_template": [{}]}"#).unwrap().template().is_err());
    }
}
