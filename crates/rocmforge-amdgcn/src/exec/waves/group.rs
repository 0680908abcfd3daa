//! Workgroups and the loop over instructions.

mod barriers;
mod halves;
pub(crate) mod heap;
pub(crate) mod replay;
mod waiting;

use crate::attend::Attendant;
use crate::calls::{Call, Calls};
use crate::counters::Counters;
use crate::dispatch::{Dispatch, Outcome, Status};
use crate::exec::checks::Checks;
use crate::exec::checks::count::{Touched, add_runs};
use crate::exec::checks::init::{Init, Uses};
use crate::exec::checks::race::{Race, SuspendedRace};
use crate::exec::clock;
use crate::exec::code::Code;
use crate::exec::memory::gws;
use crate::exec::number::mode::Mode;
use crate::exec::state::absence::NOWHERE;
use crate::exec::state::ctx::{Ctx, FromInactive, Ins};
use crate::exec::state::fields::{Flow, Kind, Src};
use crate::exec::state::grid::Gws;
use crate::exec::state::races::Races;
use crate::exec::state::variables::VariableAccesses;
use crate::exec::state::wave::{EXEC, NULL, VCC, Wave, WaveState};
use crate::exec::waves::group::replay::Epoch;
use crate::exec::waves::group_order::GroupOrder;
use crate::exec::waves::part::Part;
use crate::exec::waves::spare;
use crate::fault::{Access, FaultKind};
use crate::footprint::Footprint;
use crate::kernarg::{packet_offset, queue_offset};
use crate::kernel::Kernel;
use crate::memory::{GlobalMemory, ReserveError};
use rocmforge_code_object::{Frame, UserSgpr};
use rocmforge_isa::Arch;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;

/// Private memory a lane gets beyond the static size when the kernel's stack can grow.
const DYNAMIC_STACK: usize = 16 << 10;

/// Where gfx1201 has the workgroup's id: x, and y with z above it.
const TTMP9: u8 = 108 + 9;
const TTMP8: u8 = 108 + 8;
const TTMP7: u8 = 108 + 7;

/// Instructions a wave runs at most before the other waves of its workgroup get their turn, so that one may wait for another.
const SLICE: i64 = 1 << 16;
/// The same at the beginning of a workgroup, so that one that waits for another is noticed soon.
const FIRST_SLICE: i64 = 1 << 12;
/// Taken branches within which a loop has to come round to count as waiting.
const PROBES: usize = 64;

/// Runs some workgroups of a launch, by their places in the order of the seed.
pub(crate) fn run_part(
    dispatch: &Dispatch<'_>,
    memory: &mut GlobalMemory,
    attendant: Option<&mut dyn Attendant>,
    groups: Range<u64>,
) -> Part {
    let kernel = dispatch.kernel;
    let code = &dispatch.program.code;
    let size: u32 = dispatch.block.iter().product();
    // Work-items of a wave, and groups of 32 lanes of a workgroup.
    let lanes = if kernel.setup.wide { 64 } else { 32 };
    let waves = size.div_ceil(lanes);
    let units = waves * lanes / 32;
    let lds = (kernel.lds_size + dispatch.dynamic_lds) as usize;
    let scratch_size = kernel.private_size as usize + if kernel.setup.dynamic_stack { DYNAMIC_STACK } else { 0 };
    let tools = dispatch.options.tools;
    let race = if tools.racecheck {
        match Race::start(memory, waves, lds, &kernel.setup) {
            Ok(race) => Some(race),
            Err(source) => {
                // Ten words for each one of the card's memory.
                let (bytes, what) = (memory.size().saturating_mul(10), "the shadow of racecheck");
                let why = format!("{}, or run it without racecheck", ReserveError { bytes, what, source });
                let outcome = dispatch.refused(FaultKind::NoHostMemory, why);
                return Part::new(outcome, Touched::default(), VariableAccesses::default());
            }
        }
    } else {
        None
    };
    // What depends on loads that race is found out.
    let whole = !dispatch.options.counters && !dispatch.options.cooperative && !code.heap.allocates();
    let asks = tools.racecheck && lds > 0 && waves > 1 && whole && code.drops(kernel.entry);
    // What loads of unwritten memory give is followed.
    let follows = tools.initcheck || tools.init_registers;
    let uses = tools.init_registers.then(|| Uses::of(dispatch.program));
    let init = uses.as_ref().map(|uses| Init::start(uses.clone(), kernel, units, true));
    let observed = race.is_some() || dispatch.options.counters || tools.init_registers;
    let checks = Rc::new(RefCell::new(Checks {
        probe: None,
        init,
        count: dispatch.options.counters.then(Box::default),
        race,
        watch: None,
    }));
    let instruction_has_line = |pc| has_line(&dispatch.program.frames(pc));
    let mut ctx = Ctx {
        memory,
        elsewhere: [0; 16],
        attendant: attendant.map(|attendant| attendant as _),
        start_ns: dispatch.options.start_ns,
        khz: clock::shader_clock_khz(dispatch.program.arch()),
        latest: 0,
        lds: vec![0; lds],
        lds_state: vec![2; lds],
        lds_written: false,
        scratch: vec![0; scratch_size * 32 * units as usize],
        scratch_state: vec![2; if follows { scratch_size * 32 * units as usize } else { 0 }],
        scratch_written: false,
        scratch_size,
        vgprs: kernel.setup.vgprs,
        tools,
        check_uninit: follows,
        loading: None,
        unwritten: Vec::new(),
        inactive: FromInactive::default(),
        woken: false,
        workgroup: [0; 3],
        absent: Vec::new(),
        barriers: 0,
        last_write: NOWHERE,
        signals: 0,
        gws: if dispatch.options.cooperative {
            Gws::of_grid(dispatch.groups())
        } else {
            Gws::default()
        },
        faults: Vec::new(),
        warnings: Vec::new(),
        max_faults: dispatch.options.max_faults.max(1),
        races: Races::new(asks),
        has_line: &instruction_has_line,
        heap: &code.heap,
        text: code.start,
        variables: &code.variables,
        watched: &code.watched,
        variable_accesses: VariableAccesses::default(),
        observed,
        follows: uses.is_some(),
        replays: false,
        observer: checks.clone(),
        stop: false,
    };
    let mut machine = Machine {
        code,
        kernel,
        dispatch,
        entry: code.index_of(kernel.entry).unwrap_or_default(),
        waves: (0..waves).map(|index| spare::fresh(index, size, lanes)).collect(),
        ids: (0..units).map(|unit| ids(unit, dispatch.block)).collect(),
        budget: i64::try_from(dispatch.options.instruction_budget).unwrap_or(i64::MAX),
        counters: Counters::default(),
        random: 0,
        exhausted: false,
        slice: FIRST_SLICE,
        room: true,
        looked: false,
        observes: ctx.observed,
        asks,
        epoch: Epoch::default(),
        checks,
        runs: vec![0; if dispatch.options.counters { code.ins.len() } else { 0 }],
        uses,
    };
    let before = machine.budget;
    let [gx, gy, _] = dispatch.grid.map(u64::from);
    let most_waiting = resident(dispatch.program.arch(), waves);
    let order_of_groups = GroupOrder::new(dispatch.options.group_order_seed, dispatch.groups());
    let mut waiting = VecDeque::new();
    for place in groups {
        let n = order_of_groups.at(place);
        // All three are below the grid's sizes, which are 32 bits.
        ctx.workgroup = [n % gx, n / gx % gy, n / gx / gy].map(|at| at as u32);
        machine.random = order(dispatch.options.wave_order_seed, n);
        machine.begin(&mut ctx);
        if machine.go_on(&mut ctx) == Group::Waits {
            waiting.push_back(machine.suspend(&mut ctx));
        }
        machine.room = waiting.len() < most_waiting;
        if ctx.stop || machine.exhausted || !machine.room {
            break;
        }
    }
    machine.finish_waiting(waiting, &mut ctx);
    spare::keep(std::mem::take(&mut machine.waves));
    let mut faults = std::mem::take(&mut ctx.faults);
    let Checks { count, race, .. } = machine.checks.take();
    let footprint = match race {
        Some(race) => race.finish(ctx.memory, code.start),
        None => Footprint::default(),
    };
    for fault in &mut faults {
        fault.frames = dispatch.program.stack(fault.pc, &fault.calls);
        if let Some(other) = &mut fault.other {
            other.frames = dispatch.program.stack(other.pc, &other.calls);
        }
        // Where a value is used is no other access.
        if fault.kind.is_undefined_value()
            && let Some(used) = fault.other.take()
        {
            let place = Frame::of_program(&used.frames).map_or(String::new(), |frame| {
                format!(", {}:{}:{}", frame.file, frame.line, frame.column)
            });
            fault.note += &format!(" (pc {:#x}{place})", used.pc);
            // Compilers give a load that they have made of several no line.
            if !has_line(&fault.frames) && has_line(&used.frames) {
                fault.frames = used.frames;
            }
        }
    }
    let status = match (machine.exhausted, faults.is_empty()) {
        (true, _) => Status::BudgetExhausted,
        (false, false) => Status::Faulted,
        (false, true) => Status::Completed,
    };
    let mut touched = Touched::default();
    if let Some(count) = count {
        machine.counters.add(&count.counters);
        touched = count.touched;
        add_runs(&mut machine.counters, code, &machine.runs);
    }
    let instructions = (before - machine.budget).unsigned_abs();
    let outcome = Outcome {
        faults,
        warnings: ctx.warnings.into_iter().chain(ctx.races.into_warnings()).collect(),
        instructions,
        status,
        counters: machine.counters,
        footprint,
        clock_ns: clock::nanoseconds(ctx.latest, ctx.khz),
    };
    Part::new(outcome, touched, ctx.variable_accesses)
}

/// Whether it is known which line of the source an instruction comes from.
fn has_line(frames: &[Frame]) -> bool {
    frames.first().is_some_and(|frame| frame.line > 0)
}

/// Seed of the order of waves in a workgroup: its own, so that it does not matter what ran before.
fn order(seed: u64, group: u64) -> u64 {
    if seed == 0 {
        return 0;
    }
    // SplitMix64.
    let mut z = seed.wrapping_add((group + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    (z ^ z >> 31).max(1)
}

/// Packed work-item ids of 32 lanes: 10 bits each of x, y, z.
fn ids(unit: u32, [bx, by, _]: [u32; 3]) -> [u32; 32] {
    std::array::from_fn(|lane| {
        let flat = unit * 32 + lane as u32;
        flat % bx | (flat / bx % by) << 10 | (flat / bx / by & 0x3FF) << 20
    })
}

/// What a workgroup has come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Group {
    /// All its waves have ended, or the launch has.
    Ended,
    /// It waits for another one.
    Waits,
}

/// Workgroups of some waves that a card holds at a time. More cannot wait for each other: those that have not begun never do.
fn resident(arch: Arch, waves: u32) -> usize {
    // Radeon RX 7900 XTX: 96 compute units of 32 wave slots; RX 9070 XT: 64. What registers and LDS allow is less, and left out.
    let slots = match arch {
        Arch::Gfx1100 => 96 * 32,
        Arch::Gfx1201 => 64 * 32,
    };
    (slots / waves.max(1)).max(1) as usize
}

/// A workgroup that waits for another, and all that is its own.
struct Suspended {
    workgroup: [u32; 3],
    random: u64,
    waves: Vec<Box<Wave>>,
    lds: Vec<u8>,
    lds_state: Vec<u8>,
    scratch: Vec<u8>,
    scratch_state: Vec<u8>,
    signals: u32,
    init: Option<Box<Init>>,
    race: Option<SuspendedRace>,
}

struct Machine<'a> {
    code: &'a Code,
    kernel: &'a Kernel,
    dispatch: &'a Dispatch<'a>,
    entry: usize,
    waves: Vec<Box<Wave>>,
    /// Work-item ids of each 32 lanes, the same in every workgroup.
    ids: Vec<[u32; 32]>,
    budget: i64,
    counters: Counters,
    random: u64,
    exhausted: bool,
    /// Instructions a wave may run before the others get their turn.
    slice: i64,
    /// Not all that the card holds are waiting.
    room: bool,
    /// A wave that waits has looked at a clock: time alone may let it go on.
    looked: bool,
    /// Somebody watches requests to memory from the start.
    observes: bool,
    /// Whether a race matters depends on what does on the load: what a wave has done since a barrier can be done again.
    asks: bool,
    epoch: Epoch,
    /// The launch's observer.
    checks: Rc<RefCell<Checks>>,
    /// How often the run of instructions that starts here was executed; empty when nobody counts.
    runs: Vec<u64>,
    /// What the instructions use, once a value nobody has written had to be followed.
    uses: Option<Rc<Uses>>,
}

impl Machine<'_> {
    /// Puts a workgroup at its beginning.
    fn begin(&mut self, ctx: &mut Ctx<'_>) {
        self.slice = FIRST_SLICE;
        if std::mem::take(&mut ctx.lds_written) {
            ctx.lds_state.fill(2);
        }
        if std::mem::take(&mut ctx.scratch_written) {
            ctx.scratch_state.fill(2);
        }
        // What was followed in the workgroup before has ended with it.
        let checks = Rc::clone(&self.checks);
        let mut checks = checks.borrow_mut();
        if checks.init.as_ref().is_some_and(|init| !init.always()) {
            checks.init = None;
            ctx.follows = false;
            ctx.observed = self.observes;
        }
        if let Some(race) = &mut checks.race {
            race.start_group(ctx.workgroup);
        }
        let mut waves = std::mem::take(&mut self.waves);
        ctx.signals = 0;
        for wave in &mut waves {
            self.start(wave, ctx.workgroup);
            if let Some(init) = &mut checks.init {
                init.start_wave(wave, self.given());
            }
        }
        self.counters.workgroups += 1;
        self.counters.waves += waves.len() as u64;
        self.keep_epoch(&waves, ctx);
        self.waves = waves;
    }

    /// Runs a workgroup to its end, or until it waits for another.
    fn go_on(&mut self, ctx: &mut Ctx<'_>) -> Group {
        let mut waves = std::mem::take(&mut self.waves);
        let mut order: Vec<usize> = (0..waves.len()).collect();
        loop {
            gws::wake(&mut waves, ctx);
            self.shuffle(&mut order);
            for &n in &order {
                if waves[n].state == WaveState::Ready {
                    self.run(&mut waves[n], ctx);
                    ctx.attend();
                    if ctx.stop || self.exhausted {
                        self.judge_early_loads(&waves, ctx);
                        self.waves = waves;
                        return Group::Ended;
                    }
                }
            }
            if waves.iter().any(|w| w.state == WaveState::Ready) {
                // Some have used up their slice; if all of them wait, only another workgroup can change anything.
                if self.spins(&mut waves, ctx) {
                    self.waves = waves;
                    return Group::Waits;
                }
                self.slice = SLICE;
                continue;
            }
            if waves.iter().any(|w| w.state == WaveState::Grid) {
                if gws::wake(&mut waves, ctx) {
                    continue;
                }
                self.waves = waves;
                return Group::Waits;
            }
            self.judge_early_loads(&waves, ctx);
            let waiting = waves.iter().filter(|w| w.state == WaveState::Barrier).count();
            if waiting == 0 {
                break;
            }
            self.meet(&mut waves, ctx);
            if self.dispatch.program.arch() == Arch::Gfx1201 {
                crate::exec::gfx12::barrier::pass(&mut waves, ctx, self.code);
            }
            for wave in waves.iter_mut().filter(|w| w.state == WaveState::Barrier) {
                wave.state = WaveState::Ready;
            }
            clock::meet(&mut waves);
            self.counters.barriers += 1;
            if let Some(race) = &mut self.checks.borrow_mut().race {
                race.barrier();
            }
            self.keep_epoch(&waves, ctx);
        }
        self.waves = waves;
        Group::Ended
    }

    /// Sets a workgroup aside that waits for another, with all that is its own.
    fn suspend(&mut self, ctx: &mut Ctx<'_>) -> Suspended {
        let waves = std::mem::take(&mut self.waves);
        self.judge_early_loads(&waves, ctx);
        self.waves = waves;
        let size: u32 = self.dispatch.block.iter().product();
        let lanes = if self.kernel.setup.wide { 64 } else { 32 };
        let fresh = (0..self.waves.len() as u32)
            .map(|index| spare::fresh(index, size, lanes))
            .collect();
        let clean = |bytes: &mut Vec<u8>| {
            let len = bytes.len();
            std::mem::replace(bytes, vec![0; len])
        };
        (ctx.lds_written, ctx.scratch_written) = (true, true);
        let checks = Rc::clone(&self.checks);
        let mut checks = checks.borrow_mut();
        let init = checks.init.take();
        if let Some(uses) = self
            .uses
            .as_ref()
            .filter(|_| init.as_ref().is_some_and(|init| init.always()))
        {
            checks.init = Some(Init::start(uses.clone(), self.kernel, self.ids.len() as u32, true));
        }
        ctx.follows = checks.init.is_some();
        Suspended {
            workgroup: ctx.workgroup,
            random: self.random,
            waves: std::mem::replace(&mut self.waves, fresh),
            lds: clean(&mut ctx.lds),
            lds_state: clean(&mut ctx.lds_state),
            scratch: clean(&mut ctx.scratch),
            scratch_state: clean(&mut ctx.scratch_state),
            signals: ctx.signals,
            init,
            race: checks.race.as_mut().map(|race| race.suspend()),
        }
    }

    /// Takes a workgroup up again.
    fn resume(&mut self, group: Suspended, ctx: &mut Ctx<'_>) {
        ctx.workgroup = group.workgroup;
        self.random = group.random;
        self.waves = group.waves;
        ctx.lds = group.lds;
        ctx.lds_state = group.lds_state;
        (ctx.lds_written, ctx.scratch_written) = (true, true);
        ctx.scratch = group.scratch;
        ctx.scratch_state = group.scratch_state;
        ctx.signals = group.signals;
        let waves = std::mem::take(&mut self.waves);
        self.keep_epoch(&waves, ctx);
        self.waves = waves;
        let mut checks = self.checks.borrow_mut();
        checks.init = group.init;
        ctx.follows = checks.init.is_some();
        ctx.observed = self.observes || ctx.follows;
        if let (Some(race), Some(clocks)) = (&mut checks.race, group.race) {
            race.resume(clocks);
        }
    }

    /// Runs the workgroups that have waited for others to their ends. If each of them still waits, none will ever go on, which is
    /// noted.
    fn finish_waiting(&mut self, mut waiting: VecDeque<Suspended>, ctx: &mut Ctx<'_>) {
        let mut still = 0;
        while let Some(group) = waiting.pop_front() {
            if ctx.stop || self.exhausted {
                return;
            }
            self.resume(group, ctx);
            let mut waves = std::mem::take(&mut self.waves);
            let woken = gws::wake(&mut waves, ctx);
            let waits = !woken && self.spins(&mut waves, ctx);
            self.waves = waves;
            let all_wait = waits && still >= waiting.len();
            if all_wait && !self.looked {
                return self.never_ends(ctx, waiting.len());
            }
            if waits && !all_wait {
                still += 1;
                waiting.push_back(self.suspend(ctx));
                continue;
            }
            still = 0;
            self.looked = false;
            if self.go_on(ctx) == Group::Waits {
                waiting.push_back(self.suspend(ctx));
            }
        }
    }

    /// Scalar registers that hold something when a wave starts.
    fn given(&self) -> impl Iterator<Item = u8> {
        let setup = &self.kernel.setup;
        let ids = setup.group_id.iter().filter(|wanted| **wanted).count() as u8 + u8::from(setup.group_info);
        let elsewhere = [TTMP7, TTMP8, TTMP9];
        let count = match self.dispatch.program.arch() {
            Arch::Gfx1201 => elsewhere.len(),
            Arch::Gfx1100 => 0,
        };
        (0..setup.user_count + ids).chain(elsewhere.into_iter().take(count))
    }

    fn shuffle(&mut self, order: &mut [usize]) {
        if self.random == 0 {
            return;
        }
        for n in (1..order.len()).rev() {
            // xorshift64*
            self.random ^= self.random >> 12;
            self.random ^= self.random << 25;
            self.random ^= self.random >> 27;
            let draw = self.random.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33;
            order.swap(n, (draw % (n as u64 + 1)) as usize);
        }
    }

    /// Puts a wave into the state the kernel descriptor asks for.
    fn start(&self, w: &mut Wave, group: [u32; 3]) {
        let setup = &self.kernel.setup;
        w.state = WaveState::Ready;
        w.signals = 0;
        w.gws = None;
        w.absent.clear();
        w.barriers = 0;
        w.last_write = NOWHERE;
        w.allocation = None;
        w.next = self.entry;
        w.change_calls(Calls::clear);
        w.scc = 0;
        w.mode = Mode(setup.mode);
        (w.clock, w.looks, w.ran) = (0, 0, 0);
        w.s[NULL] = 0;
        for &(what, reg) in &setup.user {
            match what {
                UserSgpr::KernargSegmentPtr => w.set64(reg, self.dispatch.kernarg),
                UserSgpr::DispatchPtr => w.set64(reg, self.dispatch.kernarg + packet_offset(self.kernel.kernarg_size)),
                UserSgpr::QueuePtr => w.set64(reg, self.dispatch.kernarg + queue_offset(self.kernel.kernarg_size)),
                UserSgpr::PrivateSegmentSize => w.set(reg, self.kernel.private_size),
                _ => w.set64(reg, 0),
            }
        }
        if self.dispatch.program.arch() == Arch::Gfx1201 {
            // There the workgroup's id is in registers of the trap handler.
            w.set(TTMP9, group[0]);
            w.set(TTMP7, group[1] & 0xFFFF | group[2] << 16);
            // Beside the wave's number in its workgroup the register has bits of the dispatcher, which are 0 here.
            w.set(TTMP8, w.index << 25);
        }
        let mut reg = setup.user_count;
        for (wanted, id) in setup.group_id.iter().zip(group) {
            if *wanted {
                w.set(reg, id);
                reg += 1;
            }
        }
        if setup.group_info {
            w.set(reg, 0);
        }
        w.s[EXEC] = w.live;
        w.s[EXEC + 1] = 0;
        w.v[0].0 = self.ids[w.unit()];
        if let Some(high) = &mut w.high {
            w.s[EXEC + 1] = high.live;
            high.v[0].0 = self.ids[high.unit()];
        }
    }

    /// Runs a wave up to a barrier or its end.
    fn run(&mut self, w: &mut Wave, ctx: &mut Ctx<'_>) {
        let ins = &self.code.ins[..];
        let mut next = w.next;
        let slice = self.budget.min(self.slice);
        let mut budget = slice;
        let mut last = next;
        w.until = (w.ran as i64).wrapping_add(slice);
        (ctx.barriers, ctx.last_write) = (w.barriers, w.last_write);
        if !w.absent.is_empty() {
            ctx.absent = std::mem::take(&mut w.absent);
            ctx.observed = true;
        }
        loop {
            w.left = budget;
            let straight = usize::from(ins[next].straight);
            if let Some(times) = self.runs.get_mut(next) {
                *times += 1;
            }
            if ctx.follows {
                checked(ins, w, ctx, &self.checks, next, straight);
            } else {
                for i in &ins[next..next + straight] {
                    // SAFETY: `lower` stored the build of this handler that `isa::vector` found this host to support.
                    unsafe { (i.run)(w, ctx, i) };
                    if ctx.woken {
                        let index = code_index(ins, i);
                        self.follow(w, ctx, index);
                        checked(ins, w, ctx, &self.checks, index + 1, next + straight - index - 1);
                        break;
                    }
                }
            }
            let i = &ins[next + straight];
            next += straight + 1;
            budget -= straight as i64 + 1;
            let taken = match i.flow {
                // Only after the longest straight run that `straight` can count.
                Flow::Next => {
                    next -= 1;
                    budget += 1;
                    continue;
                }
                Flow::Branch => true,
                Flow::Scc0 => w.scc == 0,
                Flow::Scc1 => w.scc != 0,
                Flow::Vccz => w.s[VCC] == 0,
                Flow::Vccnz => w.s[VCC] != 0,
                Flow::Execz => w.s[EXEC] == 0,
                Flow::Execnz => w.s[EXEC] != 0,
                Flow::Vccz64 | Flow::Vccnz64 | Flow::Execz64 | Flow::Execnz64 => w.takes(i.flow),
                Flow::Halves => {
                    next = self.halves(w, ctx, next - 1);
                    continue;
                }
                Flow::SetPc => {
                    let address = w.scalar64(&i.a);
                    let back = self.code.device + u64::from(i.at) + 4;
                    let pc = self.code.start + u64::from(i.at);
                    let target = self.code.pc_of(address);
                    if self.code.heap.allocates() {
                        self.heap_call(w, ctx, i, target);
                    }
                    if i.dst as usize != NULL {
                        w.set64(i.dst, back);
                        let back = pc + 4;
                        w.change_calls(|calls| calls.enter(Call { pc, target, back }));
                    } else {
                        w.change_calls(|calls| calls.leave(target));
                    }
                    match self.code.index_at(address) {
                        Some(index) => next = index,
                        None => {
                            let fault = ctx.fault(w, i, FaultKind::PcOutOfCode, Access::None, 0, address, 0);
                            if let (Some(fault), Some(why)) = (fault, self.code.refusal_at(address)) {
                                fault.note = why.to_string();
                            }
                            w.state = WaveState::Ended;
                            break;
                        }
                    }
                    if budget < 0 || ctx.stop {
                        last = code_index(ins, i);
                        break;
                    }
                    continue;
                }
                Flow::Barrier => {
                    if w.s[EXEC] != w.live || w.high.is_some() || !ctx.absent.is_empty() {
                        ctx.at_barrier(w, i);
                    }
                    w.barriers = w.barriers.saturating_add(1);
                    ctx.last_write = NOWHERE;
                    w.state = WaveState::Barrier;
                    break;
                }
                Flow::Gws => {
                    if gws::execute(w, ctx, i) {
                        continue;
                    }
                    break;
                }
                Flow::End => {
                    w.state = WaveState::Ended;
                    break;
                }
                Flow::Trap | Flow::OffEnd => {
                    let kind = if i.flow == Flow::Trap {
                        FaultKind::Trap
                    } else {
                        FaultKind::PcOutOfCode
                    };
                    ctx.fault(w, i, kind, Access::None, 0, 0, 0);
                    w.state = WaveState::Ended;
                    break;
                }
            };
            if taken {
                next = i.target as usize;
                if budget < 0 || ctx.stop {
                    last = code_index(ins, i);
                    break;
                }
            }
        }
        w.next = next;
        w.last_write = ctx.last_write;
        if !ctx.absent.is_empty() {
            w.absent = std::mem::take(&mut ctx.absent);
            ctx.observed = self.observes || ctx.follows;
        }
        w.ran += (slice - budget).unsigned_abs();
        self.budget -= slice - budget;
        if self.budget < 0 {
            self.exhausted = true;
            self.endless(w, ctx, FaultKind::BudgetExhausted, last);
        }
        w.last = last;
    }

    /// Begins to follow values: the instruction that has just run has loaded some that nobody has written.
    #[cold]
    #[inline(never)]
    fn follow(&mut self, w: &Wave, ctx: &mut Ctx<'_>, index: usize) {
        ctx.woken = false;
        let uses = self.uses.get_or_insert_with(|| Uses::of(self.dispatch.program)).clone();
        let mut init = Init::start(uses, self.kernel, self.ids.len() as u32, false);
        init.after(w, ctx, &self.code.ins[index], index);
        self.checks.borrow_mut().init = Some(init);
        ctx.follows = true;
    }
}

#[inline(always)]
fn code_index(ins: &[Ins], i: &Ins) -> usize {
    (std::ptr::from_ref(i) as usize - ins.as_ptr() as usize) / size_of::<Ins>()
}

/// Runs a straight run of instructions, and looks at the registers of each.
#[cold]
#[inline(never)]
fn checked(ins: &[Ins], w: &mut Wave, ctx: &mut Ctx<'_>, checks: &RefCell<Checks>, first: usize, count: usize) {
    for index in first..=first + count {
        let i = &ins[index];
        let mut left_out = false;
        if let Some(init) = &mut checks.borrow_mut().init {
            left_out = ctx.replays && init.leaves(w, i, index);
            if i.flow == Flow::Halves {
                w.share(i.half & 1 != 0);
                init.before_halves(w, ctx, i, [&ins[index + 1], &ins[index + 1 + i.imm as usize]], index);
            } else {
                init.before(w, ctx, i, index);
            }
        }
        if index < first + count && !left_out {
            // SAFETY: as in `Machine::run`.
            unsafe { (i.run)(w, ctx, i) };
            if let Some(init) = &mut checks.borrow_mut().init {
                init.after(w, ctx, i, index);
            }
        }
    }
}

#[allow(dead_code, reason = "kept next to the loop that depends on it")]
const _: () = {
    assert!(std::mem::size_of::<Src>() == 12);
    assert!(Kind::V as u8 == 0);
};
