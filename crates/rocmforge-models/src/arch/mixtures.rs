//! Mixtures of experts whose layers are otherwise those of a dense decoder.

use rocmforge_ggml::{RopeStyle, RouteGate};

use super::architecture::Architecture;
use super::dense::{Dense, LayerNorms, Mixture};
use super::llama::{halves, neighbours};
use super::relatives::{ERNIE4_5, HUNYUAN};
use crate::config::Presence;
use crate::config::rules::{
    self, ExpertKeys, ExpertWidth, Experts, Factors, Rotated, Rules, SharedExpert, SharedWidth, Window, WindowRope,
};
use crate::layers::{Bias, MapRule, QueryNorm};

/// Sigmoids with a bias for the choice, and shared experts.
pub(super) const GLM4MOE_EXPERTS: Experts = Experts {
    gate: RouteGate::Sigmoid,
    choice_bias: Presence::Always,
    keys: ExpertKeys {
        gate: true,
        normalised: true,
        factor: true,
        first_dense: true,
        ..ExpertKeys::NONE
    },
    shared: Some(SharedExpert {
        inner: SharedWidth::OfCount,
        gated: false,
    }),
    ..Experts::GGUF
};

/// GLM 4.5 and later: sigmoids with a bias for the choice, a shared expert, and layers behind the others that predict further tokens.
pub(super) const GLM4MOE: Architecture = Architecture::of_gguf_only(
    Rules {
        sections: Some(RopeStyle::HalfSplit),
        predictors: true,
        experts: Some(GLM4MOE_EXPERTS),
        ..halves("glm4moe")
    },
    &Dense {
        norms: LayerNorms::BEFORE_RENAMED,
        query_norm: Some(QueryNorm::HeadsIfAny),
        ..Dense::UNSCALED
    },
);

/// Ling and Ring 2: experts chosen from groups, and a shared one beside them.
pub(super) const BAILINGMOE2: Architecture = Architecture::of_gguf_only(
    Rules {
        predictors: true,
        experts: Some(Experts {
            choice_bias: Presence::IfThere,
            shared: Some(SharedExpert {
                inner: SharedWidth::StatedOfCount,
                gated: false,
            }),
            ..GLM4MOE_EXPERTS
        }),
        ..halves("bailingmoe2")
    },
    &Dense {
        query_norm: Some(QueryNorm::Heads),
        ..Dense::UNSCALED
    },
);

/// MiniMax M2: sigmoids with a bias for the choice, and norms over whole queries and keys.
pub(super) const MINIMAX_M2: Architecture = Architecture::of_gguf_only(
    Rules {
        experts: Some(Experts {
            inner: ExpertWidth::Network,
            gate: RouteGate::Sigmoid,
            choice_bias: Presence::Always,
            keys: ExpertKeys {
                gate: true,
                factor: true,
                ..ExpertKeys::NONE
            },
            ..Experts::GGUF
        }),
        // llama.cpp takes the width of the network.
        known: rules::GGUF.ignoring("expert_feed_forward_length expert_weights_norm"),
        ..halves("minimax-m2")
    },
    &Dense {
        query_norm: Some(QueryNorm::Whole),
        ..Dense::UNSCALED
    },
);

/// MiMo V2: values shorter than keys and with a factor, windows, sinks where the file has them, and experts in the layers whose router it has.
pub(super) const MIMO2: Architecture = Architecture::of_gguf_only(
    Rules {
        window: Window::pattern(6, None),
        window_rope: WindowRope::Base,
        factors: Factors::Values,
        predictors: true,
        experts: Some(Experts {
            gate: RouteGate::Sigmoid,
            choice_bias: Presence::IfThere,
            keys: ExpertKeys::FACTOR,
            ..Experts::GGUF
        }),
        known: rules::GGUF.ignoring("expert_gating_func expert_weights_norm"),
        ..halves("mimo2")
    },
    &Dense {
        // As in llama.cpp.
        qkv: MapRule {
            bias: Bias::Unused,
            scaled: false,
        },
        sinks: Presence::IfThere,
        mixture: Mixture::WithRouter,
        ..Dense::UNSCALED
    },
);

/// Ernie 4.5 with experts: the first layers, and all but every so many, have none.
pub(super) const ERNIE4_5_MOE: Architecture = Architecture {
    gguf: Rules {
        name: "ernie4_5-moe",
        experts: Some(Experts {
            choice_bias: Presence::IfThere,
            keys: ExpertKeys {
                factor: true,
                first_dense: true,
                step: true,
                ..ExpertKeys::NONE
            },
            shared: Some(SharedExpert {
                inner: SharedWidth::StatedOrNone,
                gated: false,
            }),
            ..Experts::GGUF
        }),
        known: rules::GGUF.ignoring("expert_shared_count expert_weights_norm"),
        ..ERNIE4_5.gguf
    },
    ..ERNIE4_5
};

/// Hunyuan A13B: all layers have experts and a network beside them.
pub(super) const HUNYUAN_MOE: Architecture = Architecture {
    gguf: Rules {
        name: "hunyuan-moe",
        sections: None,
        experts: Some(Experts {
            inner: ExpertWidth::Network,
            keys: ExpertKeys::FACTOR,
            shared: Some(SharedExpert {
                inner: SharedWidth::StatedOrNetwork,
                gated: false,
            }),
            ..Experts::GGUF
        }),
        // llama.cpp takes the width of the network, and adds one network, whatever the file says.
        known: rules::GGUF.ignoring("expert_feed_forward_length expert_shared_count expert_weights_norm"),
        ..HUNYUAN.gguf
    },
    ..HUNYUAN
};

/// Granite 3 and 4: factors on embeddings, branches and logits.
pub(super) const GRANITE: Architecture = Architecture::of_gguf_only(
    Rules {
        factors: Factors::Granite,
        rotated: Rotated::Finetuned,
        experts: Some(Experts {
            inner: ExpertWidth::Network,
            keys: ExpertKeys::FACTOR,
            shared: Some(SharedExpert {
                inner: SharedWidth::StatedOrNone,
                gated: false,
            }),
            ..Experts::GGUF
        }),
        // llama.cpp takes the width of the network, and normalises the factors, whatever the file says.
        known: rules::GGUF.ignoring("expert_feed_forward_length expert_shared_count expert_weights_norm"),
        ..neighbours("granite")
    },
    &Dense::UNSCALED,
);

/// The same under the name that converters give to those with experts. llama.cpp does not ask whether it was trained with rotary embedding.
pub(super) const GRANITE_MOE: Architecture = Architecture {
    gguf: Rules {
        name: "granitemoe",
        rotated: Rotated::All,
        ..GRANITE.gguf
    },
    ..GRANITE
};
