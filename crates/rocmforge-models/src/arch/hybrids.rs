//! Decoders with selective scans (Mamba 2): alone, in place of attention in most layers, or beside it in all.

use rocmforge_ggml::RouteGate;

use super::architecture::Architecture;
use super::dense::{Dense, LayerNorms};
use super::llama::halves;
use super::mixtures::GRANITE;
use crate::config::Presence;
use crate::config::rules::{
    self, ExpertKeys, Experts, Recurrent, Rotated, Rules, ScanLayers, SharedExpert, SharedWidth,
};
use crate::keys::Known;
use crate::layers::{Activation, Bias, MapRule};
use crate::weights::LinearNames;

/// Which layers are recurrent follows from the architecture, or from their heads.
const KNOWN: Known = rules::GGUF.ignoring("attention.recurrent_layers");

/// Mamba 2: nothing else.
pub(super) const MAMBA2: Architecture = Architecture::of_gguf_only(
    Rules {
        recurrent: Some(Recurrent::Mamba2(ScanLayers::All)),
        rotated: Rotated::Never,
        known: KNOWN,
        ..halves("mamba2")
    },
    &Dense::UNSCALED,
);

/// Granite 4: attention in the layers that have heads.
pub(super) const GRANITE_HYBRID: Architecture = Architecture {
    gguf: Rules {
        name: "granitehybrid",
        recurrent: Some(Recurrent::Mamba2(ScanLayers::WithoutHeads)),
        known: rules::GGUF
            .ignoring("attention.recurrent_layers expert_feed_forward_length expert_shared_count expert_weights_norm"),
        ..GRANITE.gguf
    },
    ..GRANITE
};

/// Falcon H1: attention and a scan in each layer, whose results are added.
pub(super) const FALCON_H1: Architecture = Architecture::of_gguf_only(
    Rules {
        recurrent: Some(Recurrent::Mamba2(ScanLayers::Beside)),
        unused_divisors: true,
        known: KNOWN,
        ..halves("falcon-h1")
    },
    &Dense {
        norms: LayerNorms {
            // Its name has no end.
            network: [Some(LinearNames::bare("blk.*.ffn_norm")), None],
            ..LayerNorms::BEFORE
        },
        output_bias: Bias::Unused,
        ..Dense::UNSCALED
    },
);

/// Nemotron H: each layer has a scan, attention without rotary embedding, or a network without a gate.
pub(super) const NEMOTRON_H: Architecture = Architecture::of_gguf_only(
    Rules {
        recurrent: Some(Recurrent::Mamba2(ScanLayers::WithoutNetwork)),
        rotated: Rotated::Never,
        known: KNOWN,
        ..halves("nemotron_h")
    },
    &Dense {
        norms: LayerNorms::SAME,
        plain: Some((Activation::ReluSquared, UP_AND_DOWN, MapRule::PLAIN)),
        ..Dense::PLAIN
    },
);

/// With experts without gates in place of the network.
pub(super) const NEMOTRON_H_MOE: Architecture = Architecture {
    gguf: Rules {
        name: "nemotron_h_moe",
        experts: Some(Experts {
            gate: RouteGate::Sigmoid,
            choice_bias: Presence::Always,
            keys: ExpertKeys {
                normalised: true,
                factor: true,
                ..ExpertKeys::NONE
            },
            shared: Some(SharedExpert {
                inner: SharedWidth::StatedOrNone,
                gated: false,
            }),
            ..Experts::GGUF
        }),
        known: rules::GGUF.ignoring("attention.recurrent_layers expert_gating_func expert_shared_count"),
        ..NEMOTRON_H.gguf
    },
    ..NEMOTRON_H
};

const UP_AND_DOWN: [LinearNames; 2] = [
    LinearNames::new("blk.*.ffn_up", ""),
    LinearNames::new("blk.*.ffn_down", ""),
];
