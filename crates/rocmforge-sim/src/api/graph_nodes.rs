//! Graphs that a program builds: nodes, edges, copies of graphs, and what they look like.

use super::{answer, required};
use crate::calls::call::{Call, Hip, fail_if};
use crate::machine::handle::Found;
use crate::queues::graphs::{Graph, Node, Work};
use crate::report::ReportKind;
use rocmforge_hip_sys::*;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char, c_uint};
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;

/// Place of a new node, as the arguments of HIP's functions: out-pointer, graph, and the nodes that it comes after.
pub(crate) type NewNode = (*mut hipGraphNode_t, hipGraph_t, *const hipGraphNode_t, usize);

fn handle<T>(number: u64) -> *mut T {
    std::ptr::without_provenance_mut(number as usize)
}

impl Call<'_> {
    /// The node of a handle.
    pub(crate) fn node(&mut self, node: hipGraphNode_t) -> Hip<&mut Node> {
        let handle = node.addr() as u64;
        if self.nodes.find(handle) == Found::Stale {
            self.report(
                ReportKind::StaleHandle,
                format!("the node has been destroyed ({handle:#x})"),
            );
        }
        self.nodes.get_mut(handle).ok_or(hipErrorInvalidValue)
    }

    /// A list of nodes of one graph, each once.
    ///
    /// # Safety
    /// `list` is null or has `count` entries.
    pub(crate) unsafe fn dependencies(&self, graph: u64, list: *const hipGraphNode_t, count: usize) -> Hip<Vec<u64>> {
        fail_if(count > 0 && list.is_null(), hipErrorInvalidValue)?;
        let mut nodes = Vec::new();
        for index in 0..count {
            // SAFETY: promised by the caller.
            let node = unsafe { list.wrapping_add(index).read() }.addr() as u64;
            let known = self.nodes.get(node).is_some_and(|node| node.graph == graph);
            fail_if(!known || nodes.contains(&node), hipErrorInvalidValue)?;
            nodes.push(node);
        }
        Ok(nodes)
    }

    /// Checks where a new node goes: its graph, and what it comes after.
    pub(crate) unsafe fn place_of_node(&mut self, (to, graph, list, count): NewNode) -> Hip<(u64, Vec<u64>)> {
        required(to)?;
        fail_if(count > 0 && list.is_null(), hipErrorInvalidValue)?;
        self.graph(graph)?;
        let graph = graph.addr() as u64;
        // SAFETY: promised by the caller of the HIP function.
        let after = unsafe { self.dependencies(graph, list, count) }?;
        Ok((graph, after))
    }

    /// Adds a node whose work has been checked.
    pub(crate) unsafe fn add_node(&mut self, new: NewNode, work: Work) -> Hip {
        // SAFETY: promised by the caller of the HIP function.
        let (graph, after) = unsafe { self.place_of_node(new) }?;
        let call = self.number;
        let node = self.insert_node(graph, work, after, call);
        // SAFETY: as above.
        unsafe { answer(new.0, handle(node)) }
    }

    pub(crate) unsafe fn hipGraphCreate(&mut self, graph: *mut hipGraph_t, flags: u32) -> Hip {
        required(graph)?;
        fail_if(flags != 0, hipErrorInvalidValue)?;
        let (card, call) = (self.device(), self.number);
        let made = self.graphs.insert(Graph::new(card), call);
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(graph, handle(made)) }
    }

    pub(crate) unsafe fn graph_add_empty_node(&mut self, new: NewNode) -> Hip {
        // SAFETY: promised by the caller of the HIP function.
        unsafe { self.add_node(new, Work::Empty) }
    }

    pub(crate) unsafe fn graph_add_child_graph_node(&mut self, new: NewNode, child: hipGraph_t) -> Hip {
        // SAFETY: promised by the caller of the HIP function.
        unsafe { self.place_of_node(new) }?;
        self.graph(child)?;
        // The copy is made first, so a graph may become part of itself as it was.
        let copy = self.copy_graph(child.addr() as u64)?;
        if let Some(copy) = self.graphs.get_mut(copy) {
            copy.owned = true;
        }
        // SAFETY: as above.
        unsafe { self.add_node(new, Work::Child(copy)) }
    }

    /// Copies a graph with its nodes and their edges.
    pub(crate) fn copy_graph(&mut self, graph: u64) -> Hip<u64> {
        let call = self.number;
        let (card, nodes) = match self.graphs.get(graph) {
            Some(found) => (found.card, found.nodes.clone()),
            None => return Err(hipErrorInvalidValue),
        };
        let allocates = |node: &u64| {
            let work = self.nodes.get(*node).map(|node| node.work.kind());
            matches!(work, Some(hipGraphNodeTypeMemAlloc | hipGraphNodeTypeMemFree))
        };
        fail_if(nodes.iter().any(allocates), hipErrorNotSupported)?;
        let made = Graph {
            original: Some(graph),
            objects: self.hold_objects(graph),
            ..Graph::new(card)
        };
        let copy = self.graphs.insert(made, call);
        let mut copies = BTreeMap::new();
        for node in &nodes {
            let Some(mut node_copy) = self.nodes.get(*node).cloned() else {
                continue;
            };
            if let Work::Child(child) = node_copy.work {
                let inner = self.copy_graph(child)?;
                if let Some(inner) = self.graphs.get_mut(inner) {
                    inner.owned = true;
                }
                node_copy.work = Work::Child(inner);
            }
            (node_copy.graph, node_copy.original) = (copy, Some(*node));
            copies.insert(*node, self.nodes.insert(node_copy, call));
        }
        for node in copies.values() {
            if let Some(node) = self.nodes.get_mut(*node) {
                let copied = node.after.iter().filter_map(|other| copies.get(other).copied());
                node.after = copied.collect();
            }
        }
        if let Some(made) = self.graphs.get_mut(copy) {
            made.nodes = nodes.iter().filter_map(|node| copies.get(node).copied()).collect();
        }
        Ok(copy)
    }

    pub(crate) unsafe fn hipGraphClone(&mut self, copy: *mut hipGraph_t, graph: hipGraph_t) -> Hip {
        required(copy)?;
        self.graph(graph)?;
        let made = self.copy_graph(graph.addr() as u64)?;
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(copy, handle(made)) }
    }

    pub(crate) unsafe fn hipGraphNodeFindInClone(
        &mut self,
        to: *mut hipGraphNode_t,
        node: hipGraphNode_t,
        copy: hipGraph_t,
    ) -> Hip {
        required(to)?;
        let wanted = node.addr() as u64;
        let found = self.graph(copy)?;
        fail_if(found.original.is_none(), hipErrorInvalidValue)?;
        let nodes = found.nodes.clone();
        let is_copy = |node: &&u64| self.nodes.get(**node).is_some_and(|node| node.original == Some(wanted));
        let found = nodes.iter().find(is_copy).copied().ok_or(hipErrorInvalidValue)?;
        // SAFETY: promised by the caller of the HIP function.
        unsafe { answer(to, handle(found)) }
    }

    /// A graph goes with all its nodes.
    pub(crate) fn remove_graph(&mut self, graph: u64) {
        let Some(graph) = self.graphs.remove(graph) else { return };
        for node in graph.nodes {
            self.remove_node(node);
        }
        self.release_objects(graph.objects);
    }

    fn remove_node(&mut self, node: u64) {
        match self.nodes.remove(node).map(|node| node.work) {
            Some(Work::Child(child)) => self.remove_graph(child),
            Some(Work::Alloc(block)) => self.drop_block(block),
            _ => {}
        }
    }

    pub(crate) fn hipGraphDestroyNode(&mut self, node: hipGraphNode_t) -> Hip {
        let found = self.node(node)?;
        if matches!(found.work, Work::Alloc(_) | Work::Free(_)) {
            return Err(hipErrorNotSupported);
        }
        let (graph, node) = (found.graph, node.addr() as u64);
        self.remove_node(node);
        let mut rest = Vec::new();
        if let Some(graph) = self.graphs.get_mut(graph) {
            graph.nodes.retain(|other| *other != node);
            rest.clone_from(&graph.nodes);
        }
        for other in rest {
            if let Some(other) = self.nodes.get_mut(other) {
                other.after.retain(|before| *before != node);
            }
        }
        Ok(())
    }

    /// The ends of edges, as HIP's functions list them.
    ///
    /// # Safety
    /// The lists are null or have `count` entries each.
    unsafe fn edges(
        &self,
        graph: u64,
        from: *const hipGraphNode_t,
        to: *const hipGraphNode_t,
        count: usize,
    ) -> Hip<Vec<(u64, u64)>> {
        fail_if(count > 0 && (from.is_null() || to.is_null()), hipErrorInvalidValue)?;
        let mut edges = Vec::new();
        for index in 0..count {
            // SAFETY: promised by the caller.
            let start = unsafe { from.wrapping_add(index).read() }.addr() as u64;
            // SAFETY: promised by the caller.
            let end = unsafe { to.wrapping_add(index).read() }.addr() as u64;
            let of_graph = |node| self.nodes.get(node).is_some_and(|node| node.graph == graph);
            fail_if(start == end || !of_graph(start) || !of_graph(end), hipErrorInvalidValue)?;
            edges.push((start, end));
        }
        Ok(edges)
    }

    /// Changes what nodes come after, once for each of these edges: `change` gets the list of the end, and the start.
    unsafe fn change_edges(
        &mut self,
        graph: hipGraph_t,
        (from, to): (*const hipGraphNode_t, *const hipGraphNode_t),
        count: usize,
        change: impl Fn(&mut Vec<u64>, u64) -> Hip,
    ) -> Hip {
        self.graph(graph)?;
        // SAFETY: promised by the caller of the HIP function.
        for (start, end) in unsafe { self.edges(graph.addr() as u64, from, to, count) }? {
            change(&mut self.nodes.get_mut(end).ok_or(hipErrorInvalidValue)?.after, start)?;
        }
        Ok(())
    }

    /// Answers a list: its length alone, or as much of it as there is room for; what room is left becomes null.
    ///
    /// # Safety
    /// `count` is valid; `list` is null or has room for as many.
    unsafe fn answer_list(found: &[u64], list: *mut hipGraphNode_t, count: *mut usize) -> Hip {
        required(count)?;
        if !list.is_null() {
            // SAFETY: promised by the caller.
            let room = unsafe { count.read() };
            for index in 0..room {
                let node = found.get(index).copied().unwrap_or(0);
                // SAFETY: promised by the caller: there is room.
                unsafe { list.wrapping_add(index).write(handle(node)) };
            }
            if room <= found.len() {
                return Ok(());
            }
        }
        // SAFETY: promised by the caller.
        unsafe { answer(count, found.len()) }
    }

    pub(crate) unsafe fn graph_get_nodes(
        &mut self,
        graph: hipGraph_t,
        nodes: *mut hipGraphNode_t,
        count: *mut usize,
        roots: bool,
    ) -> Hip {
        required(count)?;
        self.graph(graph)?;
        let mut found = self.ordered_nodes(graph.addr() as u64).ok_or(hipErrorInvalidValue)?;
        if roots {
            found.retain(|node| self.nodes.get(*node).is_some_and(|node| node.after.is_empty()));
        }
        // SAFETY: promised by the caller of the HIP function.
        unsafe { Self::answer_list(&found, nodes, count) }
    }

    pub(crate) unsafe fn hipGraphGetEdges(
        &mut self,
        graph: hipGraph_t,
        from: *mut hipGraphNode_t,
        to: *mut hipGraphNode_t,
        count: *mut usize,
    ) -> Hip {
        required(count)?;
        fail_if(from.is_null() != to.is_null(), hipErrorInvalidValue)?;
        let nodes = self.graph(graph)?.nodes.clone();
        let (mut starts, mut ends) = (Vec::new(), Vec::new());
        for end in nodes {
            for start in self.nodes.get(end).map_or(&[][..], |node| &node.after) {
                starts.push(*start);
                ends.push(end);
            }
        }
        // SAFETY: promised by the caller of the HIP function.
        let mut room = unsafe { count.read() };
        // SAFETY: as above.
        unsafe { Self::answer_list(&starts, from, &raw mut room) }?;
        // SAFETY: as above.
        unsafe { Self::answer_list(&ends, to, count) }
    }

    pub(crate) unsafe fn hipGraphNodeGetDependentNodes(
        &mut self,
        node: hipGraphNode_t,
        nodes: *mut hipGraphNode_t,
        count: *mut usize,
    ) -> Hip {
        let graph = self.node(node)?.graph;
        let before = node.addr() as u64;
        let all = self.graphs.get(graph).map_or(&[][..], |graph| &graph.nodes);
        let follows = |node: &&u64| self.nodes.get(**node).is_some_and(|node| node.after.contains(&before));
        let found: Vec<u64> = all.iter().filter(follows).copied().collect();
        // SAFETY: promised by the caller of the HIP function.
        unsafe { Self::answer_list(&found, nodes, count) }
    }

    /// Writes a graph as a picture in the language of Graphviz.
    pub(crate) unsafe fn hipGraphDebugDotPrint(
        &mut self,
        graph: hipGraph_t,
        path: *const c_char,
        _flags: c_uint,
    ) -> Hip {
        required(path)?;
        let nodes = self.graph(graph)?.nodes.clone();
        let mut text = String::from("digraph dot {\n");
        for (index, handle) in nodes.iter().enumerate() {
            let Some(node) = self.nodes.get(*handle) else { continue };
            let label = match &node.work {
                Work::Kernel(kernel) => kernel.launch.module.kernels[kernel.launch.kernel].name.clone(),
                other => name_of(other.kind()).to_owned(),
            };
            let _ = writeln!(
                text,
                "  node{index} [shape=box, label=\"{}\"];",
                label.replace('"', "'")
            );
            let place = |before| nodes.iter().position(|other| other == before);
            for before in node.after.iter().filter_map(place) {
                let _ = writeln!(text, "  node{before} -> node{index};");
            }
        }
        text.push_str("}\n");
        // SAFETY: promised by the caller of the HIP function: a text that ends with NUL.
        let path = unsafe { CStr::from_ptr(path) };
        let path = std::path::Path::new(std::ffi::OsStr::from_bytes(path.to_bytes()));
        std::fs::write(path, text).map_err(|_| hipErrorOperatingSystem)
    }

    cases! {
        fn hipGraphNodeGetType(node: hipGraphNode_t, kind: *mut hipGraphNodeType) => |c| answer(kind, c.node(node)?.work.kind());
        fn hipGraphNodeGetDependencies(node: hipGraphNode_t, nodes: *mut hipGraphNode_t, count: *mut usize)
            => |c| Self::answer_list(&c.node(node)?.after, nodes, count);
        fn hipGraphAddDependencies(graph: hipGraph_t, from: *const hipGraphNode_t, to: *const hipGraphNode_t, count: usize)
            => |c| c.change_edges(graph, (from, to), count, add_edge);
        fn hipGraphRemoveDependencies(graph: hipGraph_t, from: *const hipGraphNode_t, to: *const hipGraphNode_t, count: usize)
            => |c| c.change_edges(graph, (from, to), count, remove_edge);
        fn hipGraphAddEmptyNode(graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize)
            => |c| c.graph_add_empty_node((graph_node, graph, dependencies, num_dependencies));
        fn hipGraphAddChildGraphNode(graph_node: *mut hipGraphNode_t, graph: hipGraph_t, dependencies: *const hipGraphNode_t, num_dependencies: usize, child_graph: hipGraph_t)
            => |c| c.graph_add_child_graph_node((graph_node, graph, dependencies, num_dependencies), child_graph);
        fn hipGraphGetNodes(graph: hipGraph_t, nodes: *mut hipGraphNode_t, num_nodes: *mut usize)
            => |c| c.graph_get_nodes(graph, nodes, num_nodes, false);
        fn hipGraphGetRootNodes(graph: hipGraph_t, root_nodes: *mut hipGraphNode_t, num_root_nodes: *mut usize)
            => |c| c.graph_get_nodes(graph, root_nodes, num_root_nodes, true);
    }
}

fn add_edge(after: &mut Vec<u64>, start: u64) -> Hip {
    fail_if(after.contains(&start), hipErrorInvalidValue)?;
    after.push(start);
    Ok(())
}

fn remove_edge(after: &mut Vec<u64>, start: u64) -> Hip {
    let place = after.iter().position(|before| *before == start);
    after.remove(place.ok_or(hipErrorInvalidValue)?);
    Ok(())
}

/// What a kind of node is called in pictures.
fn name_of(kind: hipGraphNodeType) -> &'static str {
    match kind {
        hipGraphNodeTypeKernel => "KERNEL",
        hipGraphNodeTypeMemcpy => "MEMCPY",
        hipGraphNodeTypeMemset => "MEMSET",
        hipGraphNodeTypeHost => "HOST",
        hipGraphNodeTypeGraph => "GRAPH",
        hipGraphNodeTypeWaitEvent => "EVENT_WAIT",
        hipGraphNodeTypeEventRecord => "EVENT_RECORD",
        hipGraphNodeTypeMemAlloc => "MEM_ALLOC",
        hipGraphNodeTypeMemFree => "MEM_FREE",
        _ => "EMPTY",
    }
}
