//! Kernel nodes of a captured graph, with the bytes of their arguments.

use super::import::{Importer, Unreadable};
use crate::interop;
use crate::sys::*;
use gridloom_core::backend::Kernel;
use gridloom_core::launch::{Dim3, LaunchConfig};
use gridloom_core::op::{
    ArgValue, KernelArgs, KernelOp, Launch, Operation, ParamLayout, Params, PointerValue,
};
use std::ffi::c_void;
use std::ptr;
use std::slice;
use std::sync::Arc;

impl Importer<'_> {
    /// Calls [`cuGraphKernelNodeGetParams`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__GRAPH.html).
    pub(super) fn kernel(&mut self, node: CUgraphNode, programmatic: bool) -> Result<Operation, Unreadable> {
        let mut p = CUDA_KERNEL_NODE_PARAMS_v2::default();
        // SAFETY: the node is a kernel of a graph that this thread alone uses; one description is
        // written, which points into the node.
        unsafe { self.reader.0.cu_graph_kernel_node_get_params(node, &mut p)? };
        let kernel = self.function(&p)?;
        // SAFETY: the arguments are those of a node that exists, and of this kernel.
        let mut args = unsafe { arguments(&*kernel, &p) }?;
        let words: Vec<_> = args.words().collect();
        for (index, offset, word) in words {
            if let Some(region) = self.pointed_at(word)? {
                let value = ArgValue::Pointer(PointerValue::Region(region));
                args.set(kernel.name(), index as usize, offset as usize, value)?;
            }
        }
        args.owner = Some(self.owner.clone());
        let mut config = self.config(node, &p);
        config.programmatic = programmatic;
        if programmatic {
            // The caller of the capture promises that the kernel waits (`griddepcontrol.wait`).
            crate::kernel::Kernel::from_backend(&*kernel)?.trust_to_wait();
        }
        // SAFETY: the launch is one that the captured code made; its caller promises that what it
        // uses stays valid until the owner, which the arguments keep, is dropped, and that it may
        // run any number of times.
        let launch = unsafe { KernelOp::new(kernel, config, args) };
        Ok(Operation::Kernel(Launch::new(launch)))
    }

    /// Returns the kernel of a node: one of Gridloom's as itself, another one borrowed once for all
    /// nodes that launch it.
    fn function(&mut self, p: &CUDA_KERNEL_NODE_PARAMS_v2) -> Result<Arc<dyn Kernel>, Unreadable> {
        let mut function = p.func;
        if function.is_null() {
            if !p.ctx.is_null() && p.ctx != self.device.context().raw() {
                return Err(Unreadable::new("a kernel of another context"));
            }
            // SAFETY: a kernel of a library that is loaded, as the caller of the capture promises;
            // one handle is written.
            // ([`cuKernelGetFunction`](https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__LIBRARY.html))
            unsafe { self.reader.0.cu_kernel_get_function(&mut function, p.kern)? };
        }
        if let Some(known) = self.kernels.get(&function) {
            return Ok(Arc::clone(known));
        }
        // SAFETY: the function is loaded, and the caller of the capture promises that it stays so
        // until the owner is dropped.
        let kernel = unsafe { interop::kernel_from_raw(self.device, function, Some(self.owner.clone())) }?;
        self.kernels.insert(function, Arc::clone(&kernel));
        Ok(kernel)
    }

    /// Returns the shape of a launch, and the attributes that change what it may do. Hints about
    /// caches, scheduling and fences are left out.
    fn config(&self, node: CUgraphNode, p: &CUDA_KERNEL_NODE_PARAMS_v2) -> LaunchConfig {
        let attribute = |id| self.reader.attribute(node, id);
        // SAFETY: each value was written as its attribute says, or is zero.
        let (cluster, cooperative, priority) = unsafe {
            (
                attribute(CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION).clusterDim,
                attribute(CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE).cooperative,
                attribute(CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PRIORITY).priority,
            )
        };
        let cluster = Dim3::new(cluster.x, cluster.y, cluster.z);
        let grid = (p.gridDimX, p.gridDimY, p.gridDimZ);
        let mut config = LaunchConfig::new(grid, (p.blockDimX, p.blockDimY, p.blockDimZ));
        config.shared = p.sharedMemBytes;
        config.cluster = (cluster.volume() > 1).then_some(cluster);
        config.cooperative = cooperative != 0;
        config.priority = (priority != 0).then_some(priority);
        config
    }
}

/// Returns the arguments of a kernel node.
///
/// # Safety
/// The description is that of a node of this kernel, and the node exists.
unsafe fn arguments(kernel: &dyn Kernel, p: &CUDA_KERNEL_NODE_PARAMS_v2) -> Result<KernelArgs, Unreadable> {
    let mut args = KernelArgs::default();
    if !p.extra.is_null() {
        // SAFETY: promised by the caller.
        let buffer = unsafe { packed(p.extra) }?;
        args.bytes = buffer.into();
        args.layout = match kernel.params() {
            Some(params) => params.clone(),
            // The layout is unknown, so all bytes are treated as one argument.
            None => [ParamLayout { offset: 0, size: buffer.len() as u32 }].into_iter().collect(),
        };
        args.bytes.resize(args.layout.buffer_bytes().max(buffer.len()), 0);
        return Ok(args);
    }
    let params = match kernel.params() {
        Some(params) => params.clone(),
        None if p.kernelParams.is_null() => Params::new(),
        None => {
            return Err(Unreadable::new("the driver tells the parameters of kernels since CUDA 12.4 only"));
        }
    };
    if p.kernelParams.is_null() && !params.is_empty() {
        return Err(Unreadable::new(format!(
            "the driver does not tell the arguments of kernel {}",
            kernel.name()
        )));
    }
    args.bytes.resize(params.buffer_bytes(), 0);
    for (index, place) in params.iter().enumerate() {
        // SAFETY: promised by the caller: a node has a pointer for each parameter, to as many bytes
        // as the parameter has.
        let value = unsafe {
            let from = *p.kernelParams.add(index);
            if from.is_null() {
                return Err(Unreadable::new(format!(
                    "the driver does not tell argument {index} of {}",
                    kernel.name()
                )));
            }
            slice::from_raw_parts(from.cast::<u8>(), place.size as usize)
        };
        args.bytes[place.offset as usize..][..value.len()].copy_from_slice(value);
    }
    args.layout = params;
    Ok(args)
}

/// `CU_LAUNCH_PARAM_BUFFER_POINTER` and `CU_LAUNCH_PARAM_BUFFER_SIZE`: casts in the header. The
/// list ends with null.
const BUFFER_POINTER: *mut c_void = ptr::without_provenance_mut(1);
const BUFFER_SIZE: *mut c_void = ptr::without_provenance_mut(2);

/// Returns the bytes of arguments that were given as one buffer.
///
/// # Safety
/// The list is one that the driver accepts, and what it points to exists for as long as the result
/// is used.
unsafe fn packed<'a>(list: *mut *mut c_void) -> Result<&'a [u8], Unreadable> {
    let (mut start, mut size) = (ptr::null::<u8>(), 0usize);
    let mut at = list;
    // SAFETY: promised by the caller: pairs of a name and a value, and null at the end.
    unsafe {
        while !(*at).is_null() {
            match *at {
                name if name == BUFFER_POINTER => start = (*at.add(1)).cast(),
                name if name == BUFFER_SIZE => size = *(*at.add(1)).cast::<usize>(),
                _ => return Err(Unreadable::new("arguments of a kernel in a form that is not known")),
            }
            at = at.add(2);
        }
        if start.is_null() {
            return Ok(&[]);
        }
        Ok(slice::from_raw_parts(start, size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_in_one_buffer_are_found_in_either_order() {
        let bytes = [1u8, 2, 3, 4, 5];
        let mut size = bytes.len();
        let (start, size) = (bytes.as_ptr().cast_mut().cast(), (&raw mut size).cast());
        let end = ptr::null_mut();
        for mut list in
            [[BUFFER_POINTER, start, BUFFER_SIZE, size, end], [BUFFER_SIZE, size, BUFFER_POINTER, start, end]]
        {
            // SAFETY: a list as the driver's manual has it.
            let found = unsafe { packed(list.as_mut_ptr()) };
            assert_eq!(found.ok(), Some(bytes.as_slice()));
        }
    }
}
