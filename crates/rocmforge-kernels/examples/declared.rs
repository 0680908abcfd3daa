//! A list of what launchers state: kernel, grid and operands of each, at the dimensions of its counters on a simulated card.
//!
//! `cargo run -p rocmforge-kernels --example declared [NAME]`

#![allow(clippy::print_stdout)] // this is what it is for

use rocmforge_kernels::declared::{Call, Fresh, all};
use rocmforge_testkit::gpu;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let wanted = std::env::args().nth(1);
    let lease = gpu();
    let kernels = lease.kernels().observed(|launch| {
        let [x, y, z] = launch.grid;
        println!(
            "  {} of {}: {x} x {y} x {z} blocks of {} threads",
            launch.kernel, launch.family, launch.threads
        );
        for operand in &launch.operands {
            let access = if operand.written { "writes" } else { "reads" };
            let may_be = match operand.may_be {
                [] => String::new(),
                others => format!(", may be {}", others.join(" or ")),
            };
            println!("    {access} {}: {} bytes{may_be}", operand.name, operand.bytes);
        }
    });
    let declared = all().filter(|kernel| wanted.as_deref().is_none_or(|name| name == kernel.name));
    let mut shown = 0;
    for kernel in declared {
        for dims in kernel.counted.iter().chain(kernel.tested.last()).take(1) {
            println!("{} {dims:?}", kernel.name);
            (kernel.call)(
                &mut Call::new(&kernels, lease.backend().stream(), &mut Fresh, false),
                dims,
            )?;
            shown += 1;
        }
    }
    match shown {
        0 => Err(format!("no launcher {} is declared", wanted.unwrap_or_default()).into()),
        _ => Ok(()),
    }
}
