//! Pooling of token vectors to one sentence vector: sentence-transformers' `modules.json` and `1_Pooling/config.json`.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::{ModelError, files};

/// The most bytes of a module's configuration.
const LONGEST: u64 = 1 << 20;

/// Which tokens count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolingMode {
    /// All that are not padding, equally.
    Mean,
    /// The first.
    Cls,
    /// The last that is not padding.
    Last,
    /// Through a classifier: a score in place of an embedding.
    Rank,
}

/// Pooling and what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pooling {
    /// Which tokens count.
    pub mode: PoolingMode,
    /// Whether embeddings are scaled to length 1. Scores never are.
    pub normalize: bool,
}

#[derive(Deserialize)]
struct Module {
    #[serde(rename = "type")]
    kind: String,
    path: String,
}

impl Module {
    /// The kind without the modules of Python that it lies in.
    fn name(&self) -> &str {
        self.kind.rsplit('.').next().unwrap_or_default()
    }
}

/// Scores of a model that ranks, and what becomes of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scores {
    /// One, as it is.
    One,
    /// Two, of yes and of no: the result is the share of the first in their softmax.
    Answers,
    /// The logit of a token; with a second token the share of the first in their softmax.
    OfTokens(u32, Option<u32>),
}

/// Tokens whose logits give a score.
#[derive(Deserialize)]
struct LogitScore {
    true_token_id: u32,
    false_token_id: Option<u32>,
}

/// A linear map after the pooling.
#[derive(Deserialize)]
struct Dense {
    bias: bool,
    activation_function: String,
}

#[derive(Deserialize)]
struct Raw {
    #[serde(default)]
    pooling_mode_cls_token: bool,
    #[serde(default)]
    pooling_mode_mean_tokens: bool,
    #[serde(default)]
    pooling_mode_max_tokens: bool,
    #[serde(default)]
    pooling_mode_mean_sqrt_len_tokens: bool,
    #[serde(default)]
    pooling_mode_weightedmean_tokens: bool,
    #[serde(default)]
    pooling_mode_lasttoken: bool,
}

impl Pooling {
    /// Of a model that ranks.
    pub const RANK: Self = Self {
        mode: PoolingMode::Rank,
        normalize: false,
    };

    /// Reads what the directory says; mean and normalised if it says nothing.
    ///
    /// # Errors
    /// [`ModelError::Unsupported`] names a module or a mode that is not done here.
    pub fn read(directory: &Path) -> Result<Self, ModelError> {
        let modules_path = directory.join("modules.json");
        let Some(modules) = files::read_json_if_there::<Vec<Module>>(&modules_path)? else {
            let path = directory.join("1_Pooling/config.json");
            let mode = match files::read_json_if_there(&path)? {
                Some(raw) => mode(&raw, path)?,
                None => PoolingMode::Mean,
            };
            return Ok(Self { mode, normalize: true });
        };
        let mut pooling = Self {
            mode: PoolingMode::Mean,
            normalize: false,
        };
        let mut dense = 0;
        for module in modules {
            match module.name() {
                "Transformer" => {}
                "Normalize" => pooling.normalize = true,
                "Dense" => dense += 1,
                // Logits give a score.
                "LogitScore" => pooling.mode = PoolingMode::Rank,
                "Pooling" => {
                    // The path comes from a file: only a plain folder name is followed.
                    let folder = Path::new(&module.path).file_name().unwrap_or_default();
                    let path = directory.join(folder).join("config.json");
                    pooling.mode = mode(&files::read_json_within(&path, LONGEST)?, path)?;
                }
                _ => {
                    return Err(ModelError::Unsupported {
                        path: modules_path,
                        field: "type",
                        value: module.kind,
                        supported: "Transformer, Pooling, Dense, Normalize".to_owned(),
                    });
                }
            }
        }
        match dense {
            0 | 2 => Ok(pooling),
            count => Err(ModelError::Unsupported {
                path: modules_path,
                field: "type",
                value: format!("{count} of Dense"),
                supported: "two of Dense, or none".to_owned(),
            }),
        }
    }

    /// Whether modules say how states become an embedding.
    pub(crate) fn is_stated(directory: &Path) -> Result<bool, ModelError> {
        let modules: Option<Vec<Module>> = files::read_json_if_there(&directory.join("modules.json"))?;
        Ok(modules
            .unwrap_or_default()
            .iter()
            .any(|module| module.name() == "Pooling"))
    }

    /// Folders of the maps after the pooling, in their order.
    ///
    /// # Errors
    /// A map has a bias, or a function after it.
    pub(crate) fn dense(directory: &Path) -> Result<Vec<PathBuf>, ModelError> {
        let modules: Option<Vec<Module>> = files::read_json_if_there(&directory.join("modules.json"))?;
        let modules = modules.unwrap_or_default().into_iter();
        let dense = modules.filter(|module| module.name() == "Dense");
        let folder = |module: Module| {
            let folder = directory.join(Path::new(&module.path).file_name().unwrap_or_default());
            let path = folder.join("config.json");
            let config: Dense = files::read_json_within(&path, LONGEST)?;
            let refused = match config.activation_function.ends_with(".Identity") {
                true => config.bias.then(|| ("bias", "true".to_owned())),
                false => Some(("activation_function", config.activation_function)),
            };
            match refused {
                None => Ok(folder),
                Some((field, value)) => Err(ModelError::Unsupported {
                    path,
                    field,
                    value,
                    supported: "maps without bias and function".to_owned(),
                }),
            }
        };
        dense.map(folder).collect()
    }
}

impl Scores {
    /// The tokens that a directory's modules name, if they do.
    ///
    /// # Errors
    /// The module's file is missing or damaged.
    pub(crate) fn of_tokens(directory: &Path) -> Result<Option<Self>, ModelError> {
        let modules: Option<Vec<Module>> = files::read_json_if_there(&directory.join("modules.json"))?;
        let modules = modules.unwrap_or_default().into_iter();
        let Some(module) = modules.into_iter().find(|module| module.name() == "LogitScore") else {
            return Ok(None);
        };
        let folder = Path::new(&module.path).file_name().unwrap_or_default();
        let found: LogitScore = files::read_json_within(&directory.join(folder).join("config.json"), LONGEST)?;
        Ok(Some(Self::OfTokens(found.true_token_id, found.false_token_id)))
    }
}

/// The mode that a pooling's configuration chooses.
fn mode(raw: &Raw, path: PathBuf) -> Result<PoolingMode, ModelError> {
    let other =
        raw.pooling_mode_max_tokens || raw.pooling_mode_mean_sqrt_len_tokens || raw.pooling_mode_weightedmean_tokens;
    let chosen = [
        (raw.pooling_mode_mean_tokens, PoolingMode::Mean),
        (raw.pooling_mode_cls_token, PoolingMode::Cls),
        (raw.pooling_mode_lasttoken, PoolingMode::Last),
    ];
    let mut chosen = chosen.into_iter().filter_map(|(on, mode)| on.then_some(mode));
    match (chosen.next(), chosen.next(), other) {
        (Some(mode), None, false) => Ok(mode),
        _ => Err(ModelError::Unsupported {
            path,
            field: "pooling_mode",
            value: "another choice".to_owned(),
            supported: "exactly one of pooling_mode_mean_tokens, pooling_mode_cls_token and pooling_mode_lasttoken"
                .to_owned(),
        }),
    }
}
