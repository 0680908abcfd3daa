//! Faults by plan: which calls fail, which launches hang or crash, when the device is lost, which memory figures lie.
//!
//! A [`FaultPlan`](plan::FaultPlan) says what goes wrong and when; [`SimConfig::faults`](crate::SimConfig::faults) or
//! [`SimHost::set_fault_plan`](crate::SimHost::set_fault_plan) puts it to work; [`SimHost::fired_faults`](crate::SimHost::fired_faults) lists what happened. A planned fault is no
//! mistake of the program, so it makes no report.

pub(crate) mod arguments;
pub(crate) mod plan;
pub(crate) mod state;
