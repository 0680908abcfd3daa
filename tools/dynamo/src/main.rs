//! Serves one model as a worker of Dynamo: `rocmforge-dynamo --model MODEL`.

use std::sync::Arc;

use clap::Parser;
use dynamo_backend_common::{CommonArgs, DisaggregationMode, WorkerConfig};
use rocmforge_dynamo::{ModelEngine, Options};

#[derive(Parser)]
#[command(version, about = "Serves one model as a worker of NVIDIA Dynamo")]
struct Args {
    #[command(flatten)]
    common: CommonArgs,
    #[command(flatten)]
    options: Options,
}

fn main() -> anyhow::Result<()> {
    let Args { common, options } = Args::parse();
    anyhow::ensure!(
        common.disaggregation_mode == DisaggregationMode::Aggregated && !common.route_to_encoder,
        "one worker computes prompts and decodes: leave --disaggregation-mode at agg, and --route-to-encoder out"
    );
    let config = WorkerConfig {
        namespace: common.namespace,
        component: common.component,
        endpoint: common.endpoint,
        // The frontend reads the tokenizer and the chat template there.
        model_name: options.model.display().to_string(),
        served_model_name: Some(options.served_name()),
        endpoint_types: common.endpoint_types,
        custom_jinja_template: common.custom_jinja_template,
        tool_call_parser: common.dyn_tool_call_parser,
        reasoning_parser: common.dyn_reasoning_parser,
        exclude_tools_when_tool_choice_none: common.exclude_tools_when_tool_choice_none,
        // The worker publishes no events of its cache.
        enable_local_indexer: false,
        runtime: common.runtime,
        enable_rl: common.enable_rl,
        ..WorkerConfig::default()
    };
    dynamo_backend_common::run(Arc::new(ModelEngine::new(options)), config)
}
