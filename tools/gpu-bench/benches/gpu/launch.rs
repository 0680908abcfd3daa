//! Host time of a launch: the provider's own call, the checked launch, and the safe launcher of a kernel.

use crate::card::Card;
use crate::inputs::{Kind, blank, tiled};
use crate::table::{Table, Work};
use crate::timing::median;
use criterion::Criterion;
use rocmforge_hip_sys::{HipApi, hipFunction_t, hipModule_t, hipStream_t, hipStreamNonBlocking};
use rocmforge_runtime::{LaunchArgs, LaunchConfig};
use std::ffi::c_void;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Launches between waits: a queue that is full would make the host wait for the card.
const BATCH: u64 = 128;
/// Rounds in which the two paths alternate.
const ROUNDS: usize = 400;
const N: usize = 1024;

/// A stream and a kernel that the runtime does not know of.
struct Raw {
    api: Arc<dyn HipApi>,
    stream: hipStream_t,
    module: hipModule_t,
    function: hipFunction_t,
}

impl Raw {
    fn new(card: &Card) -> Self {
        let api = Arc::clone(card.lease.api());
        let object = card.kernels().pack().object("elementwise").expect("a sound pack");
        let object = object.expect("a family of every pack");
        // The zero behind it ends PTX text.
        let mut image = vec![0u64; object.len() / 8 + 1];
        bytemuck::cast_slice_mut::<u64, u8>(&mut image)[..object.len()].copy_from_slice(&object);
        let (mut stream, mut module, mut function) = (std::ptr::null_mut(), std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: `stream` is a live out-pointer for the call.
        let made = unsafe { api.hipStreamCreateWithFlags(&mut stream, hipStreamNonBlocking) };
        assert!(made.is_success(), "{made}");
        // SAFETY: `module` is a live out-pointer; the image is whole. It is copied or compiled within the call by every provider
        // that is timed.
        let loaded = unsafe { api.hipModuleLoadData(&mut module, image.as_ptr().cast()) };
        assert!(loaded.is_success(), "{loaded}");
        // SAFETY: `function` is a live out-pointer, the module is loaded, the name ends with NUL.
        let found = unsafe { api.hipModuleGetFunction(&mut function, module, c"scale".as_ptr()) };
        assert!(found.is_success(), "{found}");
        Self {
            api,
            stream,
            module,
            function,
        }
    }

    fn launch(&self, x: *mut c_void, y: *mut c_void) {
        let (mut x, mut y, mut n, mut factor) = (x, y, N as u64, 2.0f32);
        let mut params: [*mut c_void; 4] = [
            (&raw mut x).cast(),
            (&raw mut y).cast(),
            (&raw mut n).cast(),
            (&raw mut factor).cast(),
        ];
        let (blocks, params, none) = (N as u32 / 1024, params.as_mut_ptr(), std::ptr::null_mut());
        // SAFETY: the four arguments are the kernel's, and both buffers have the elements.
        let launched = unsafe {
            self.api
                .hipModuleLaunchKernel(self.function, blocks, 1, 1, 256, 1, 1, 0, self.stream, params, none)
        };
        assert!(launched.is_success(), "{launched}");
    }

    fn wait(&self) {
        // SAFETY: the stream is live.
        while !unsafe { self.api.hipStreamQuery(self.stream) }.is_success() {
            std::thread::sleep(Duration::from_micros(20));
        }
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        self.wait();
        // SAFETY: loaded by `new`, idle, not used again.
        let unloaded = unsafe { self.api.hipModuleUnload(self.module) };
        // SAFETY: made by `new`, idle, not used again.
        let destroyed = unsafe { self.api.hipStreamDestroy(self.stream) };
        assert!(unloaded.is_success() && destroyed.is_success());
    }
}

/// The host's time for `launches`; the card catches up between batches, which does not count.
fn timed(launches: u64, mut launch: impl FnMut(), wait: impl Fn()) -> Duration {
    let (mut time, mut left) = (Duration::ZERO, launches);
    while left > 0 {
        let batch = left.min(BATCH);
        let start = Instant::now();
        (0..batch).for_each(|_| launch());
        time += start.elapsed();
        wait();
        left -= batch;
    }
    time
}

pub(crate) fn run(criterion: &mut Criterion, card: &Card, table: &mut Table) {
    let (stream, kernels) = (card.stream(), card.kernels());
    let (x, y) = (tiled(stream, Kind::Numbers, 1, N), blank(stream, N));
    stream.synchronize().expect("the copies end");
    let raw = Raw::new(card);
    let kernel = kernels.kernel("elementwise", "scale").expect("a kernel of every pack");

    let mut by_provider = || raw.launch(x.as_device_ptr(), y.as_device_ptr());
    let mut checked = || {
        let args = LaunchArgs::new().buffer(&x).out(&y).value(N as u64).value(2.0f32);
        // SAFETY: both buffers have the elements that one block of 1024 goes over.
        unsafe { stream.launch(&kernel, LaunchConfig::linear(1, 256), args) }.expect("a sound launch");
    };
    let mut safe = || kernels.scale(stream, &x, &y, 2.0).expect("a sound launch");
    let raw_wait = || raw.wait();
    let wait = || stream.synchronize().expect("the launches end");

    let mut group = criterion.benchmark_group("launch");
    let shape = "1024 floats";
    group.bench_function("provider's call", |bencher| {
        table.time(bencher, ("launch: provider's call", shape), Work::Calls, |n| {
            timed(n, &mut by_provider, raw_wait)
        });
    });
    group.bench_function("checked", |bencher| {
        table.time(bencher, ("launch: checked", shape), Work::Calls, |n| {
            timed(n, &mut checked, wait)
        });
    });
    group.bench_function("safe launcher", |bencher| {
        table.time(bencher, ("launch: safe launcher", shape), Work::Calls, |n| {
            timed(n, &mut safe, wait)
        });
    });
    group.finish();
    if !card.is_real() {
        return;
    }

    // Turn by turn: what the machine does meanwhile meets all three.
    let mut rounds = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        let per_launch = |time: Duration| time.as_secs_f64() / BATCH as f64;
        rounds[0].push(per_launch(timed(BATCH, &mut by_provider, raw_wait)));
        rounds[1].push(per_launch(timed(BATCH, &mut checked, wait)));
        rounds[2].push(per_launch(timed(BATCH, &mut safe, wait)));
    }
    let [provider, checked, safe] = rounds.map(median);
    table.note(format!(
        "a launch by the provider's call {:.2} us, checked {:.2} us ({:+.1} %), by the safe launcher {:.2} us ({:+.1} %); \
         {ROUNDS} rounds of {BATCH} each, turn by turn (target: at most +15 %)",
        provider * 1e6,
        checked * 1e6,
        100.0 * (checked / provider - 1.0),
        safe * 1e6,
        100.0 * (safe / provider - 1.0),
    ));
}
