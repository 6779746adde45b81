//! Every driver function that Gridloom calls, declared once.
//!
//! A line gives the Rust name, the signature, the header's type for it (`PFN_…`, against which the
//! signature is checked when this crate is compiled), and the exported names that carry this
//! signature, newest first, each with the CUDA version that introduced it in the header's own
//! encoding (12030 is 12.3).
//!
//! An unsuffixed name keeps its *oldest* meaning in every later driver, so a function is looked up
//! by the exact name that has the signature written here. Functions that changed their signature
//! appear once per signature.

use super::table::driver_functions;
use crate::sys::*;
use std::ffi::{c_char, c_int, c_uchar, c_uint, c_ulonglong, c_ushort, c_void};

driver_functions! {
    "group__CUDA__INITIALIZE" {
        fn cu_init(flags: c_uint)
            as PFN_cuInit_v2000 = ["cuInit" since 2000];
    }
    "group__CUDA__VERSION" {
        fn cu_driver_get_version(driver_version: *mut c_int)
            as PFN_cuDriverGetVersion_v2020 = ["cuDriverGetVersion" since 2020];
    }
    "group__CUDA__ERROR" {
        fn cu_get_error_name(error: CUresult, p_str: *mut *const c_char) -> CUresult
            as PFN_cuGetErrorName_v6000 = ["cuGetErrorName" since 6000];
        fn cu_get_error_string(error: CUresult, p_str: *mut *const c_char) -> CUresult
            as PFN_cuGetErrorString_v6000 = ["cuGetErrorString" since 6000];
    }
    "group__CUDA__DRIVER__ENTRY__POINT" {
        fn cu_get_proc_address(
            symbol: *const c_char, pfn: *mut *mut c_void, driver_version: c_int, flags: cuuint64_t,
            symbol_found: *mut CUdriverProcAddressQueryResult
        )
            as PFN_cuGetProcAddress_v12000 = ["cuGetProcAddress_v2" since 12000];
    }
    "group__CUDA__DEVICE" {
        fn cu_device_get_count(count: *mut c_int)
            as PFN_cuDeviceGetCount_v2000 = ["cuDeviceGetCount" since 2000];
        fn cu_device_get(device: *mut CUdevice, ordinal: c_int)
            as PFN_cuDeviceGet_v2000 = ["cuDeviceGet" since 2000];
        fn cu_device_get_name(name: *mut c_char, len: c_int, dev: CUdevice)
            as PFN_cuDeviceGetName_v2000 = ["cuDeviceGetName" since 2000];
        fn cu_device_get_uuid(uuid: *mut CUuuid, dev: CUdevice)
            as PFN_cuDeviceGetUuid_v11040 = ["cuDeviceGetUuid_v2" since 11040];
        fn cu_device_total_mem(bytes: *mut usize, dev: CUdevice)
            as PFN_cuDeviceTotalMem_v3020 = ["cuDeviceTotalMem_v2" since 3020];
        fn cu_device_get_attribute(pi: *mut c_int, attrib: CUdevice_attribute, dev: CUdevice)
            as PFN_cuDeviceGetAttribute_v2000 = ["cuDeviceGetAttribute" since 2000];
        fn cu_device_get_default_mem_pool(pool_out: *mut CUmemoryPool, dev: CUdevice)
            as PFN_cuDeviceGetDefaultMemPool_v11020 = ["cuDeviceGetDefaultMemPool" since 11020];
    }
    "group__CUDA__PRIMARY__CTX" {
        fn cu_device_primary_ctx_retain(pctx: *mut CUcontext, dev: CUdevice)
            as PFN_cuDevicePrimaryCtxRetain_v7000 = ["cuDevicePrimaryCtxRetain" since 7000];
        fn cu_device_primary_ctx_release(dev: CUdevice)
            as PFN_cuDevicePrimaryCtxRelease_v11000 = ["cuDevicePrimaryCtxRelease_v2" since 11000];
    }
    "group__CUDA__CTX" {
        fn cu_ctx_push_current(ctx: CUcontext)
            as PFN_cuCtxPushCurrent_v4000 = ["cuCtxPushCurrent_v2" since 4000];
        fn cu_ctx_pop_current(pctx: *mut CUcontext)
            as PFN_cuCtxPopCurrent_v4000 = ["cuCtxPopCurrent_v2" since 4000];
        fn cu_ctx_get_current(pctx: *mut CUcontext)
            as PFN_cuCtxGetCurrent_v4000 = ["cuCtxGetCurrent" since 4000];
        fn cu_ctx_synchronize()
            as PFN_cuCtxSynchronize_v2000 = ["cuCtxSynchronize" since 2000];
        fn cu_ctx_set_limit(limit: CUlimit, value: usize)
            as PFN_cuCtxSetLimit_v3010 = ["cuCtxSetLimit" since 3010];
        fn cu_ctx_get_limit(pvalue: *mut usize, limit: CUlimit)
            as PFN_cuCtxGetLimit_v3010 = ["cuCtxGetLimit" since 3010];
        fn cu_ctx_get_stream_priority_range(least_priority: *mut c_int, greatest_priority: *mut c_int)
            as PFN_cuCtxGetStreamPriorityRange_v5050 = ["cuCtxGetStreamPriorityRange" since 5050];
    }
    "group__CUDA__PEER__ACCESS" {
        fn cu_device_can_access_peer(can_access_peer: *mut c_int, dev: CUdevice, peer_dev: CUdevice)
            as PFN_cuDeviceCanAccessPeer_v4000 = ["cuDeviceCanAccessPeer" since 4000];
        fn cu_ctx_enable_peer_access(peer_context: CUcontext, flags: c_uint)
            as PFN_cuCtxEnablePeerAccess_v4000 = ["cuCtxEnablePeerAccess" since 4000];
        fn cu_ctx_disable_peer_access(peer_context: CUcontext)
            as PFN_cuCtxDisablePeerAccess_v4000 = ["cuCtxDisablePeerAccess" since 4000];
    }
    "group__CUDA__MEM" {
        fn cu_mem_get_info(free: *mut usize, total: *mut usize)
            as PFN_cuMemGetInfo_v3020 = ["cuMemGetInfo_v2" since 3020];
        fn cu_mem_alloc(dptr: *mut CUdeviceptr, bytesize: usize)
            as PFN_cuMemAlloc_v3020 = ["cuMemAlloc_v2" since 3020];
        fn cu_mem_free(dptr: CUdeviceptr)
            as PFN_cuMemFree_v3020 = ["cuMemFree_v2" since 3020];
        fn cu_mem_host_alloc(pp: *mut *mut c_void, bytesize: usize, flags: c_uint)
            as PFN_cuMemHostAlloc_v2020 = ["cuMemHostAlloc" since 2020];
        fn cu_mem_free_host(p: *mut c_void)
            as PFN_cuMemFreeHost_v2000 = ["cuMemFreeHost" since 2000];
        fn cu_mem_host_get_device_pointer(pdptr: *mut CUdeviceptr, p: *mut c_void, flags: c_uint)
            as PFN_cuMemHostGetDevicePointer_v3020 = ["cuMemHostGetDevicePointer_v2" since 3020];
        fn cu_mem_alloc_managed(dptr: *mut CUdeviceptr, bytesize: usize, flags: c_uint)
            as PFN_cuMemAllocManaged_v6000 = ["cuMemAllocManaged" since 6000];
        fn cu_memcpy_async(dst: CUdeviceptr, src: CUdeviceptr, byte_count: usize, h_stream: CUstream)
            as PFN_cuMemcpyAsync_v4000 = ["cuMemcpyAsync" since 4000];
        fn cu_memcpy_h_to_d_async(
            dst_device: CUdeviceptr, src_host: *const c_void, byte_count: usize, h_stream: CUstream
        )
            as PFN_cuMemcpyHtoDAsync_v3020 = ["cuMemcpyHtoDAsync_v2" since 3020];
        fn cu_memcpy_d_to_h_async(
            dst_host: *mut c_void, src_device: CUdeviceptr, byte_count: usize, h_stream: CUstream
        )
            as PFN_cuMemcpyDtoHAsync_v3020 = ["cuMemcpyDtoHAsync_v2" since 3020];
        fn cu_memcpy_d_to_d_async(
            dst_device: CUdeviceptr, src_device: CUdeviceptr, byte_count: usize, h_stream: CUstream
        )
            as PFN_cuMemcpyDtoDAsync_v3020 = ["cuMemcpyDtoDAsync_v2" since 3020];
        fn cu_memcpy_peer_async(
            dst_device: CUdeviceptr, dst_context: CUcontext, src_device: CUdeviceptr,
            src_context: CUcontext, byte_count: usize, h_stream: CUstream
        )
            as PFN_cuMemcpyPeerAsync_v4000 = ["cuMemcpyPeerAsync" since 4000];
        fn cu_memcpy_2d_async(p_copy: *const CUDA_MEMCPY2D_v2, h_stream: CUstream)
            as PFN_cuMemcpy2DAsync_v3020 = ["cuMemcpy2DAsync_v2" since 3020];
        fn cu_memcpy_3d_async(p_copy: *const CUDA_MEMCPY3D_v2, h_stream: CUstream)
            as PFN_cuMemcpy3DAsync_v3020 = ["cuMemcpy3DAsync_v2" since 3020];
        fn cu_memset_d8_async(dst_device: CUdeviceptr, uc: c_uchar, n: usize, h_stream: CUstream)
            as PFN_cuMemsetD8Async_v3020 = ["cuMemsetD8Async" since 3020];
        fn cu_memset_d16_async(dst_device: CUdeviceptr, us: c_ushort, n: usize, h_stream: CUstream)
            as PFN_cuMemsetD16Async_v3020 = ["cuMemsetD16Async" since 3020];
        fn cu_memset_d32_async(dst_device: CUdeviceptr, ui: c_uint, n: usize, h_stream: CUstream)
            as PFN_cuMemsetD32Async_v3020 = ["cuMemsetD32Async" since 3020];
        fn cu_memset_d2d8_async(
            dst_device: CUdeviceptr, dst_pitch: usize, uc: c_uchar, width: usize, height: usize,
            h_stream: CUstream
        )
            as PFN_cuMemsetD2D8Async_v3020 = ["cuMemsetD2D8Async" since 3020];
        fn cu_memset_d2d16_async(
            dst_device: CUdeviceptr, dst_pitch: usize, us: c_ushort, width: usize, height: usize,
            h_stream: CUstream
        )
            as PFN_cuMemsetD2D16Async_v3020 = ["cuMemsetD2D16Async" since 3020];
        fn cu_memset_d2d32_async(
            dst_device: CUdeviceptr, dst_pitch: usize, ui: c_uint, width: usize, height: usize,
            h_stream: CUstream
        )
            as PFN_cuMemsetD2D32Async_v3020 = ["cuMemsetD2D32Async" since 3020];
    }
    "group__CUDA__UNIFIED" {
        fn cu_pointer_get_attribute(data: *mut c_void, attribute: CUpointer_attribute, ptr: CUdeviceptr)
            as PFN_cuPointerGetAttribute_v4000 = ["cuPointerGetAttribute" since 4000];
    }
    "group__CUDA__MALLOC__ASYNC" {
        fn cu_mem_alloc_async(dptr: *mut CUdeviceptr, bytesize: usize, h_stream: CUstream)
            as PFN_cuMemAllocAsync_v11020 = ["cuMemAllocAsync" since 11020];
        fn cu_mem_alloc_from_pool_async(
            dptr: *mut CUdeviceptr, bytesize: usize, pool: CUmemoryPool, h_stream: CUstream
        )
            as PFN_cuMemAllocFromPoolAsync_v11020 = ["cuMemAllocFromPoolAsync" since 11020];
        fn cu_mem_free_async(dptr: CUdeviceptr, h_stream: CUstream)
            as PFN_cuMemFreeAsync_v11020 = ["cuMemFreeAsync" since 11020];
        fn cu_mem_pool_create(pool: *mut CUmemoryPool, pool_props: *const CUmemPoolProps_v1)
            as PFN_cuMemPoolCreate_v11020 = ["cuMemPoolCreate" since 11020];
        fn cu_mem_pool_set_attribute(pool: CUmemoryPool, attr: CUmemPool_attribute, value: *mut c_void)
            as PFN_cuMemPoolSetAttribute_v11020 = ["cuMemPoolSetAttribute" since 11020];
        fn cu_mem_pool_get_attribute(pool: CUmemoryPool, attr: CUmemPool_attribute, value: *mut c_void)
            as PFN_cuMemPoolGetAttribute_v11020 = ["cuMemPoolGetAttribute" since 11020];
        fn cu_mem_pool_trim_to(pool: CUmemoryPool, min_bytes_to_keep: usize)
            as PFN_cuMemPoolTrimTo_v11020 = ["cuMemPoolTrimTo" since 11020];
        fn cu_mem_pool_set_access(pool: CUmemoryPool, map: *const CUmemAccessDesc_v1, count: usize)
            as PFN_cuMemPoolSetAccess_v11020 = ["cuMemPoolSetAccess" since 11020];
    }
    "group__CUDA__STREAM" {
        fn cu_stream_create_with_priority(ph_stream: *mut CUstream, flags: c_uint, priority: c_int)
            as PFN_cuStreamCreateWithPriority_v5050 = ["cuStreamCreateWithPriority" since 5050];
        fn cu_stream_destroy(h_stream: CUstream)
            as PFN_cuStreamDestroy_v4000 = ["cuStreamDestroy_v2" since 4000];
        fn cu_stream_get_priority(h_stream: CUstream, priority: *mut c_int)
            as PFN_cuStreamGetPriority_v5050 = ["cuStreamGetPriority" since 5050];
        fn cu_stream_get_ctx(h_stream: CUstream, pctx: *mut CUcontext)
            as PFN_cuStreamGetCtx_v9020 = ["cuStreamGetCtx" since 9020];
        fn cu_stream_wait_event(h_stream: CUstream, h_event: CUevent, flags: c_uint)
            as PFN_cuStreamWaitEvent_v3020 = ["cuStreamWaitEvent" since 3020];
        fn cu_stream_query(h_stream: CUstream) -> CUresult
            as PFN_cuStreamQuery_v2000 = ["cuStreamQuery" since 2000];
        fn cu_stream_synchronize(h_stream: CUstream)
            as PFN_cuStreamSynchronize_v2000 = ["cuStreamSynchronize" since 2000];
        fn cu_stream_begin_capture(h_stream: CUstream, mode: CUstreamCaptureMode)
            as PFN_cuStreamBeginCapture_v10010 = ["cuStreamBeginCapture_v2" since 10010];
        fn cu_stream_end_capture(h_stream: CUstream, ph_graph: *mut CUgraph)
            as PFN_cuStreamEndCapture_v10000 = ["cuStreamEndCapture" since 10000];
        fn cu_stream_is_capturing(h_stream: CUstream, capture_status: *mut CUstreamCaptureStatus)
            as PFN_cuStreamIsCapturing_v10000 = ["cuStreamIsCapturing" since 10000];
        fn cu_stream_begin_capture_to_graph(
            h_stream: CUstream, h_graph: CUgraph, dependencies: *const CUgraphNode,
            dependency_data: *const CUgraphEdgeData, num_dependencies: usize, mode: CUstreamCaptureMode
        )
            as PFN_cuStreamBeginCaptureToGraph_v12030 = ["cuStreamBeginCaptureToGraph" since 12030];
        fn cu_stream_get_capture_info_v2(
            h_stream: CUstream, capture_status_out: *mut CUstreamCaptureStatus, id_out: *mut cuuint64_t,
            graph_out: *mut CUgraph, dependencies_out: *mut *const CUgraphNode,
            num_dependencies_out: *mut usize
        )
            as PFN_cuStreamGetCaptureInfo_v11030 = ["cuStreamGetCaptureInfo_v2" since 11030];
        fn cu_stream_get_capture_info_v3(
            h_stream: CUstream, capture_status_out: *mut CUstreamCaptureStatus, id_out: *mut cuuint64_t,
            graph_out: *mut CUgraph, dependencies_out: *mut *const CUgraphNode,
            edge_data_out: *mut *const CUgraphEdgeData, num_dependencies_out: *mut usize
        )
            as PFN_cuStreamGetCaptureInfo_v12030 = ["cuStreamGetCaptureInfo_v3" since 12030];
        fn cu_stream_update_capture_dependencies(
            h_stream: CUstream, dependencies: *mut CUgraphNode, num_dependencies: usize, flags: c_uint
        )
            as PFN_cuStreamUpdateCaptureDependencies_v11030 = ["cuStreamUpdateCaptureDependencies" since 11030];
        fn cu_stream_update_capture_dependencies_v2(
            h_stream: CUstream, dependencies: *mut CUgraphNode, dependency_data: *const CUgraphEdgeData,
            num_dependencies: usize, flags: c_uint
        )
            as PFN_cuStreamUpdateCaptureDependencies_v12030 = ["cuStreamUpdateCaptureDependencies_v2" since 12030];
        fn cu_thread_exchange_stream_capture_mode(mode: *mut CUstreamCaptureMode)
            as PFN_cuThreadExchangeStreamCaptureMode_v10010 = ["cuThreadExchangeStreamCaptureMode" since 10010];
    }
    "group__CUDA__EVENT" {
        fn cu_event_create(ph_event: *mut CUevent, flags: c_uint)
            as PFN_cuEventCreate_v2000 = ["cuEventCreate" since 2000];
        fn cu_event_destroy(h_event: CUevent)
            as PFN_cuEventDestroy_v4000 = ["cuEventDestroy_v2" since 4000];
        fn cu_event_record(h_event: CUevent, h_stream: CUstream)
            as PFN_cuEventRecord_v2000 = ["cuEventRecord" since 2000];
        fn cu_event_record_with_flags(h_event: CUevent, h_stream: CUstream, flags: c_uint)
            as PFN_cuEventRecordWithFlags_v11010 = ["cuEventRecordWithFlags" since 11010];
        fn cu_event_query(h_event: CUevent) -> CUresult
            as PFN_cuEventQuery_v2000 = ["cuEventQuery" since 2000];
        fn cu_event_synchronize(h_event: CUevent)
            as PFN_cuEventSynchronize_v2000 = ["cuEventSynchronize" since 2000];
        fn cu_event_elapsed_time(p_milliseconds: *mut f32, h_start: CUevent, h_end: CUevent)
            as PFN_cuEventElapsedTime_v2000 = ["cuEventElapsedTime_v2" since 12080, "cuEventElapsedTime" since 2000];
    }
    "group__CUDA__MODULE" {
        fn cu_module_load_data_ex(
            module: *mut CUmodule, image: *const c_void, num_options: c_uint, options: *mut CUjit_option,
            option_values: *mut *mut c_void
        )
            as PFN_cuModuleLoadDataEx_v2010 = ["cuModuleLoadDataEx" since 2010];
        fn cu_module_unload(hmod: CUmodule)
            as PFN_cuModuleUnload_v2000 = ["cuModuleUnload" since 2000];
        fn cu_module_get_function(hfunc: *mut CUfunction, hmod: CUmodule, name: *const c_char)
            as PFN_cuModuleGetFunction_v2000 = ["cuModuleGetFunction" since 2000];
        fn cu_module_get_global(
            dptr: *mut CUdeviceptr, bytes: *mut usize, hmod: CUmodule, name: *const c_char
        )
            as PFN_cuModuleGetGlobal_v3020 = ["cuModuleGetGlobal_v2" since 3020];
        fn cu_module_get_function_count(count: *mut c_uint, hmod: CUmodule)
            as PFN_cuModuleGetFunctionCount_v12040 = ["cuModuleGetFunctionCount" since 12040];
        fn cu_module_enumerate_functions(functions: *mut CUfunction, num_functions: c_uint, r#mod: CUmodule)
            as PFN_cuModuleEnumerateFunctions_v12040 = ["cuModuleEnumerateFunctions" since 12040];
    }
    "group__CUDA__LIBRARY" {
        fn cu_library_load_data(
            library: *mut CUlibrary, code: *const c_void, jit_options: *mut CUjit_option,
            jit_options_values: *mut *mut c_void, num_jit_options: c_uint,
            library_options: *mut CUlibraryOption, library_option_values: *mut *mut c_void,
            num_library_options: c_uint
        )
            as PFN_cuLibraryLoadData_v12000 = ["cuLibraryLoadData" since 12000];
        fn cu_library_unload(library: CUlibrary)
            as PFN_cuLibraryUnload_v12000 = ["cuLibraryUnload" since 12000];
        fn cu_library_get_kernel(p_kernel: *mut CUkernel, library: CUlibrary, name: *const c_char)
            as PFN_cuLibraryGetKernel_v12000 = ["cuLibraryGetKernel" since 12000];
        fn cu_library_get_global(
            dptr: *mut CUdeviceptr, bytes: *mut usize, library: CUlibrary, name: *const c_char
        )
            as PFN_cuLibraryGetGlobal_v12000 = ["cuLibraryGetGlobal" since 12000];
        fn cu_kernel_get_function(p_func: *mut CUfunction, kernel: CUkernel)
            as PFN_cuKernelGetFunction_v12000 = ["cuKernelGetFunction" since 12000];
        fn cu_kernel_get_attribute(
            pi: *mut c_int, attrib: CUfunction_attribute, kernel: CUkernel, dev: CUdevice
        )
            as PFN_cuKernelGetAttribute_v12000 = ["cuKernelGetAttribute" since 12000];
        fn cu_kernel_set_attribute(
            attrib: CUfunction_attribute, val: c_int, kernel: CUkernel, dev: CUdevice
        )
            as PFN_cuKernelSetAttribute_v12000 = ["cuKernelSetAttribute" since 12000];
        fn cu_kernel_get_param_info(
            kernel: CUkernel, param_index: usize, param_offset: *mut usize, param_size: *mut usize
        )
            as PFN_cuKernelGetParamInfo_v12040 = ["cuKernelGetParamInfo" since 12040];
    }
    "group__CUDA__EXEC" {
        fn cu_func_get_attribute(pi: *mut c_int, attrib: CUfunction_attribute, hfunc: CUfunction)
            as PFN_cuFuncGetAttribute_v2020 = ["cuFuncGetAttribute" since 2020];
        fn cu_func_set_attribute(hfunc: CUfunction, attrib: CUfunction_attribute, value: c_int)
            as PFN_cuFuncSetAttribute_v9000 = ["cuFuncSetAttribute" since 9000];
        fn cu_func_get_name(name: *mut *const c_char, hfunc: CUfunction)
            as PFN_cuFuncGetName_v12030 = ["cuFuncGetName" since 12030];
        fn cu_func_get_param_info(
            func: CUfunction, param_index: usize, param_offset: *mut usize, param_size: *mut usize
        ) -> CUresult
            as PFN_cuFuncGetParamInfo_v12040 = ["cuFuncGetParamInfo" since 12040];
        fn cu_launch_kernel(
            f: CUfunction, grid_dim_x: c_uint, grid_dim_y: c_uint, grid_dim_z: c_uint, block_dim_x: c_uint,
            block_dim_y: c_uint, block_dim_z: c_uint, shared_mem_bytes: c_uint, h_stream: CUstream,
            kernel_params: *mut *mut c_void, extra: *mut *mut c_void
        )
            as PFN_cuLaunchKernel_v4000 = ["cuLaunchKernel" since 4000];
        fn cu_launch_kernel_ex(
            config: *const CUlaunchConfig, f: CUfunction, kernel_params: *mut *mut c_void,
            extra: *mut *mut c_void
        )
            as PFN_cuLaunchKernelEx_v11060 = ["cuLaunchKernelEx" since 11060];
        fn cu_launch_host_func(h_stream: CUstream, r#fn: CUhostFn, user_data: *mut c_void)
            as PFN_cuLaunchHostFunc_v10000 = ["cuLaunchHostFunc" since 10000];
    }
    "group__CUDA__OCCUPANCY" {
        fn cu_occupancy_max_active_blocks_per_multiprocessor_with_flags(
            num_blocks: *mut c_int, func: CUfunction, block_size: c_int, dynamic_s_mem_size: usize,
            flags: c_uint
        )
            as PFN_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags_v7000 = ["cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags" since 7000];
        fn cu_occupancy_max_potential_block_size(
            min_grid_size: *mut c_int, block_size: *mut c_int, func: CUfunction,
            block_size_to_dynamic_s_mem_size: CUoccupancyB2DSize, dynamic_s_mem_size: usize,
            block_size_limit: c_int
        )
            as PFN_cuOccupancyMaxPotentialBlockSize_v6050 = ["cuOccupancyMaxPotentialBlockSize" since 6050];
        fn cu_occupancy_max_active_clusters(
            num_clusters: *mut c_int, func: CUfunction, config: *const CUlaunchConfig
        )
            as PFN_cuOccupancyMaxActiveClusters_v11070 = ["cuOccupancyMaxActiveClusters" since 11070];
    }
    "group__CUDA__GRAPH" {
        fn cu_graph_create(ph_graph: *mut CUgraph, flags: c_uint)
            as PFN_cuGraphCreate_v10000 = ["cuGraphCreate" since 10000];
        fn cu_graph_destroy(h_graph: CUgraph)
            as PFN_cuGraphDestroy_v10000 = ["cuGraphDestroy" since 10000];
        fn cu_graph_clone(ph_graph_clone: *mut CUgraph, original_graph: CUgraph)
            as PFN_cuGraphClone_v10000 = ["cuGraphClone" since 10000];
        fn cu_graph_node_find_in_clone(
            ph_node: *mut CUgraphNode, h_original_node: CUgraphNode, h_cloned_graph: CUgraph
        )
            as PFN_cuGraphNodeFindInClone_v10000 = ["cuGraphNodeFindInClone" since 10000];
        fn cu_graph_add_node(
            ph_graph_node: *mut CUgraphNode, h_graph: CUgraph, dependencies: *const CUgraphNode,
            dependency_data: *const CUgraphEdgeData, num_dependencies: usize,
            node_params: *mut CUgraphNodeParams
        )
            as PFN_cuGraphAddNode_v12030 = ["cuGraphAddNode_v2" since 12030];
        fn cu_graph_add_kernel_node(
            ph_graph_node: *mut CUgraphNode, h_graph: CUgraph, dependencies: *const CUgraphNode,
            num_dependencies: usize, node_params: *const CUDA_KERNEL_NODE_PARAMS_v2
        )
            as PFN_cuGraphAddKernelNode_v12000 = ["cuGraphAddKernelNode_v2" since 12000];
        fn cu_graph_add_memcpy_node(
            ph_graph_node: *mut CUgraphNode, h_graph: CUgraph, dependencies: *const CUgraphNode,
            num_dependencies: usize, copy_params: *const CUDA_MEMCPY3D_v2, ctx: CUcontext
        )
            as PFN_cuGraphAddMemcpyNode_v10000 = ["cuGraphAddMemcpyNode" since 10000];
        fn cu_graph_add_memset_node(
            ph_graph_node: *mut CUgraphNode, h_graph: CUgraph, dependencies: *const CUgraphNode,
            num_dependencies: usize, memset_params: *const CUDA_MEMSET_NODE_PARAMS_v1, ctx: CUcontext
        )
            as PFN_cuGraphAddMemsetNode_v10000 = ["cuGraphAddMemsetNode" since 10000];
        fn cu_graph_add_host_node(
            ph_graph_node: *mut CUgraphNode, h_graph: CUgraph, dependencies: *const CUgraphNode,
            num_dependencies: usize, node_params: *const CUDA_HOST_NODE_PARAMS_v1
        )
            as PFN_cuGraphAddHostNode_v10000 = ["cuGraphAddHostNode" since 10000];
        fn cu_graph_add_child_graph_node(
            ph_graph_node: *mut CUgraphNode, h_graph: CUgraph, dependencies: *const CUgraphNode,
            num_dependencies: usize, child_graph: CUgraph
        )
            as PFN_cuGraphAddChildGraphNode_v10000 = ["cuGraphAddChildGraphNode" since 10000];
        fn cu_graph_add_empty_node(
            ph_graph_node: *mut CUgraphNode, h_graph: CUgraph, dependencies: *const CUgraphNode,
            num_dependencies: usize
        )
            as PFN_cuGraphAddEmptyNode_v10000 = ["cuGraphAddEmptyNode" since 10000];
        fn cu_graph_add_event_record_node(
            ph_graph_node: *mut CUgraphNode, h_graph: CUgraph, dependencies: *const CUgraphNode,
            num_dependencies: usize, event: CUevent
        )
            as PFN_cuGraphAddEventRecordNode_v11010 = ["cuGraphAddEventRecordNode" since 11010];
        fn cu_graph_add_event_wait_node(
            ph_graph_node: *mut CUgraphNode, h_graph: CUgraph, dependencies: *const CUgraphNode,
            num_dependencies: usize, event: CUevent
        )
            as PFN_cuGraphAddEventWaitNode_v11010 = ["cuGraphAddEventWaitNode" since 11010];
        fn cu_graph_add_mem_alloc_node(
            ph_graph_node: *mut CUgraphNode, h_graph: CUgraph, dependencies: *const CUgraphNode,
            num_dependencies: usize, node_params: *mut CUDA_MEM_ALLOC_NODE_PARAMS
        )
            as PFN_cuGraphAddMemAllocNode_v11040 = ["cuGraphAddMemAllocNode" since 11040];
        fn cu_graph_add_mem_free_node(
            ph_graph_node: *mut CUgraphNode, h_graph: CUgraph, dependencies: *const CUgraphNode,
            num_dependencies: usize, dptr: CUdeviceptr
        )
            as PFN_cuGraphAddMemFreeNode_v11040 = ["cuGraphAddMemFreeNode" since 11040];
        fn cu_graph_conditional_handle_create(
            p_handle_out: *mut CUgraphConditionalHandle, h_graph: CUgraph, ctx: CUcontext,
            default_launch_value: c_uint, flags: c_uint
        )
            as PFN_cuGraphConditionalHandleCreate_v12030 = ["cuGraphConditionalHandleCreate" since 12030];
        fn cu_graph_destroy_node(h_node: CUgraphNode)
            as PFN_cuGraphDestroyNode_v10000 = ["cuGraphDestroyNode" since 10000];
        fn cu_graph_add_dependencies(
            h_graph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode, num_dependencies: usize
        )
            as PFN_cuGraphAddDependencies_v10000 = ["cuGraphAddDependencies" since 10000];
        fn cu_graph_add_dependencies_v2(
            h_graph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode,
            edge_data: *const CUgraphEdgeData, num_dependencies: usize
        )
            as PFN_cuGraphAddDependencies_v12030 = ["cuGraphAddDependencies_v2" since 12030];
        fn cu_graph_remove_dependencies(
            h_graph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode, num_dependencies: usize
        )
            as PFN_cuGraphRemoveDependencies_v10000 = ["cuGraphRemoveDependencies" since 10000];
        fn cu_graph_remove_dependencies_v2(
            h_graph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode,
            edge_data: *const CUgraphEdgeData, num_dependencies: usize
        )
            as PFN_cuGraphRemoveDependencies_v12030 = ["cuGraphRemoveDependencies_v2" since 12030];
        fn cu_graph_get_nodes(h_graph: CUgraph, nodes: *mut CUgraphNode, num_nodes: *mut usize)
            as PFN_cuGraphGetNodes_v10000 = ["cuGraphGetNodes" since 10000];
        fn cu_graph_get_root_nodes(
            h_graph: CUgraph, root_nodes: *mut CUgraphNode, num_root_nodes: *mut usize
        )
            as PFN_cuGraphGetRootNodes_v10000 = ["cuGraphGetRootNodes" since 10000];
        fn cu_graph_get_edges(
            h_graph: CUgraph, from: *mut CUgraphNode, to: *mut CUgraphNode, num_edges: *mut usize
        )
            as PFN_cuGraphGetEdges_v10000 = ["cuGraphGetEdges" since 10000];
        fn cu_graph_get_edges_v2(
            h_graph: CUgraph, from: *mut CUgraphNode, to: *mut CUgraphNode,
            edge_data: *mut CUgraphEdgeData, num_edges: *mut usize
        )
            as PFN_cuGraphGetEdges_v12030 = ["cuGraphGetEdges_v2" since 12030];
        fn cu_graph_node_get_type(h_node: CUgraphNode, r#type: *mut CUgraphNodeType)
            as PFN_cuGraphNodeGetType_v10000 = ["cuGraphNodeGetType" since 10000];
        fn cu_graph_kernel_node_get_params(
            h_node: CUgraphNode, node_params: *mut CUDA_KERNEL_NODE_PARAMS_v2
        )
            as PFN_cuGraphKernelNodeGetParams_v12000 = ["cuGraphKernelNodeGetParams_v2" since 12000];
        fn cu_graph_kernel_node_set_params(
            h_node: CUgraphNode, node_params: *const CUDA_KERNEL_NODE_PARAMS_v2
        )
            as PFN_cuGraphKernelNodeSetParams_v12000 = ["cuGraphKernelNodeSetParams_v2" since 12000];
        fn cu_graph_kernel_node_get_attribute(
            h_node: CUgraphNode, attr: CUkernelNodeAttrID, value_out: *mut CUkernelNodeAttrValue_v1
        )
            as PFN_cuGraphKernelNodeGetAttribute_v11000 = ["cuGraphKernelNodeGetAttribute" since 11000];
        fn cu_graph_kernel_node_set_attribute(
            h_node: CUgraphNode, attr: CUkernelNodeAttrID, value: *const CUkernelNodeAttrValue_v1
        )
            as PFN_cuGraphKernelNodeSetAttribute_v11000 = ["cuGraphKernelNodeSetAttribute" since 11000];
        fn cu_graph_memcpy_node_get_params(h_node: CUgraphNode, node_params: *mut CUDA_MEMCPY3D_v2)
            as PFN_cuGraphMemcpyNodeGetParams_v10000 = ["cuGraphMemcpyNodeGetParams" since 10000];
        fn cu_graph_memcpy_node_set_params(h_node: CUgraphNode, node_params: *const CUDA_MEMCPY3D_v2)
            as PFN_cuGraphMemcpyNodeSetParams_v10000 = ["cuGraphMemcpyNodeSetParams" since 10000];
        fn cu_graph_memset_node_get_params(
            h_node: CUgraphNode, node_params: *mut CUDA_MEMSET_NODE_PARAMS_v1
        )
            as PFN_cuGraphMemsetNodeGetParams_v10000 = ["cuGraphMemsetNodeGetParams" since 10000];
        fn cu_graph_memset_node_set_params(
            h_node: CUgraphNode, node_params: *const CUDA_MEMSET_NODE_PARAMS_v1
        )
            as PFN_cuGraphMemsetNodeSetParams_v10000 = ["cuGraphMemsetNodeSetParams" since 10000];
        fn cu_graph_host_node_get_params(h_node: CUgraphNode, node_params: *mut CUDA_HOST_NODE_PARAMS_v1)
            as PFN_cuGraphHostNodeGetParams_v10000 = ["cuGraphHostNodeGetParams" since 10000];
        fn cu_graph_host_node_set_params(h_node: CUgraphNode, node_params: *const CUDA_HOST_NODE_PARAMS_v1)
            as PFN_cuGraphHostNodeSetParams_v10000 = ["cuGraphHostNodeSetParams" since 10000];
        fn cu_graph_child_graph_node_get_graph(h_node: CUgraphNode, ph_graph: *mut CUgraph)
            as PFN_cuGraphChildGraphNodeGetGraph_v10000 = ["cuGraphChildGraphNodeGetGraph" since 10000];
        fn cu_graph_event_record_node_get_event(h_node: CUgraphNode, event_out: *mut CUevent)
            as PFN_cuGraphEventRecordNodeGetEvent_v11010 = ["cuGraphEventRecordNodeGetEvent" since 11010];
        fn cu_graph_event_record_node_set_event(h_node: CUgraphNode, event: CUevent)
            as PFN_cuGraphEventRecordNodeSetEvent_v11010 = ["cuGraphEventRecordNodeSetEvent" since 11010];
        fn cu_graph_event_wait_node_get_event(h_node: CUgraphNode, event_out: *mut CUevent)
            as PFN_cuGraphEventWaitNodeGetEvent_v11010 = ["cuGraphEventWaitNodeGetEvent" since 11010];
        fn cu_graph_event_wait_node_set_event(h_node: CUgraphNode, event: CUevent)
            as PFN_cuGraphEventWaitNodeSetEvent_v11010 = ["cuGraphEventWaitNodeSetEvent" since 11010];
        fn cu_graph_mem_alloc_node_get_params(
            h_node: CUgraphNode, params_out: *mut CUDA_MEM_ALLOC_NODE_PARAMS
        )
            as PFN_cuGraphMemAllocNodeGetParams_v11040 = ["cuGraphMemAllocNodeGetParams" since 11040];
        fn cu_graph_mem_free_node_get_params(h_node: CUgraphNode, dptr_out: *mut CUdeviceptr)
            as PFN_cuGraphMemFreeNodeGetParams_v11040 = ["cuGraphMemFreeNodeGetParams" since 11040];
        fn cu_graph_instantiate_with_params(
            ph_graph_exec: *mut CUgraphExec, h_graph: CUgraph,
            instantiate_params: *mut CUDA_GRAPH_INSTANTIATE_PARAMS
        )
            as PFN_cuGraphInstantiateWithParams_v12000 = ["cuGraphInstantiateWithParams" since 12000];
        fn cu_graph_instantiate_with_flags(
            ph_graph_exec: *mut CUgraphExec, h_graph: CUgraph, flags: c_ulonglong
        )
            as PFN_cuGraphInstantiateWithFlags_v11040 = ["cuGraphInstantiateWithFlags" since 11040];
        fn cu_graph_exec_destroy(h_graph_exec: CUgraphExec)
            as PFN_cuGraphExecDestroy_v10000 = ["cuGraphExecDestroy" since 10000];
        fn cu_graph_launch(h_graph: CUgraphExec, h_stream: CUstream)
            as PFN_cuGraphLaunch_v10000 = ["cuGraphLaunch" since 10000];
        fn cu_graph_upload(h_graph: CUgraphExec, h_stream: CUstream)
            as PFN_cuGraphUpload_v11010 = ["cuGraphUpload" since 11010];
        fn cu_graph_exec_update(
            h_graph_exec: CUgraphExec, h_graph: CUgraph, result_info: *mut CUgraphExecUpdateResultInfo
        )
            as PFN_cuGraphExecUpdate_v12000 = ["cuGraphExecUpdate_v2" since 12000];
        fn cu_graph_exec_node_set_params(
            h_graph_exec: CUgraphExec, h_node: CUgraphNode, node_params: *mut CUgraphNodeParams
        )
            as PFN_cuGraphExecNodeSetParams_v12020 = ["cuGraphExecNodeSetParams" since 12020];
        fn cu_graph_exec_kernel_node_set_params(
            h_graph_exec: CUgraphExec, h_node: CUgraphNode, node_params: *const CUDA_KERNEL_NODE_PARAMS_v2
        )
            as PFN_cuGraphExecKernelNodeSetParams_v12000 = ["cuGraphExecKernelNodeSetParams_v2" since 12000];
        fn cu_graph_exec_memcpy_node_set_params(
            h_graph_exec: CUgraphExec, h_node: CUgraphNode, copy_params: *const CUDA_MEMCPY3D_v2,
            ctx: CUcontext
        )
            as PFN_cuGraphExecMemcpyNodeSetParams_v10020 = ["cuGraphExecMemcpyNodeSetParams" since 10020];
        fn cu_graph_exec_memset_node_set_params(
            h_graph_exec: CUgraphExec, h_node: CUgraphNode,
            memset_params: *const CUDA_MEMSET_NODE_PARAMS_v1, ctx: CUcontext
        )
            as PFN_cuGraphExecMemsetNodeSetParams_v10020 = ["cuGraphExecMemsetNodeSetParams" since 10020];
        fn cu_graph_exec_host_node_set_params(
            h_graph_exec: CUgraphExec, h_node: CUgraphNode, node_params: *const CUDA_HOST_NODE_PARAMS_v1
        )
            as PFN_cuGraphExecHostNodeSetParams_v10020 = ["cuGraphExecHostNodeSetParams" since 10020];
        fn cu_graph_exec_child_graph_node_set_params(
            h_graph_exec: CUgraphExec, h_node: CUgraphNode, child_graph: CUgraph
        )
            as PFN_cuGraphExecChildGraphNodeSetParams_v11010 = ["cuGraphExecChildGraphNodeSetParams" since 11010];
        fn cu_graph_exec_event_record_node_set_event(
            h_graph_exec: CUgraphExec, h_node: CUgraphNode, event: CUevent
        )
            as PFN_cuGraphExecEventRecordNodeSetEvent_v11010 = ["cuGraphExecEventRecordNodeSetEvent" since 11010];
        fn cu_graph_exec_event_wait_node_set_event(
            h_graph_exec: CUgraphExec, h_node: CUgraphNode, event: CUevent
        )
            as PFN_cuGraphExecEventWaitNodeSetEvent_v11010 = ["cuGraphExecEventWaitNodeSetEvent" since 11010];
        fn cu_graph_node_set_enabled(h_graph_exec: CUgraphExec, h_node: CUgraphNode, is_enabled: c_uint)
            as PFN_cuGraphNodeSetEnabled_v11060 = ["cuGraphNodeSetEnabled" since 11060];
        fn cu_graph_node_get_enabled(
            h_graph_exec: CUgraphExec, h_node: CUgraphNode, is_enabled: *mut c_uint
        )
            as PFN_cuGraphNodeGetEnabled_v11060 = ["cuGraphNodeGetEnabled" since 11060];
        fn cu_graph_debug_dot_print(h_graph: CUgraph, path: *const c_char, flags: c_uint)
            as PFN_cuGraphDebugDotPrint_v11030 = ["cuGraphDebugDotPrint" since 11030];
        fn cu_user_object_create(
            object_out: *mut CUuserObject, ptr: *mut c_void, destroy: CUhostFn, initial_refcount: c_uint,
            flags: c_uint
        )
            as PFN_cuUserObjectCreate_v11030 = ["cuUserObjectCreate" since 11030];
        fn cu_user_object_retain(object: CUuserObject, count: c_uint)
            as PFN_cuUserObjectRetain_v11030 = ["cuUserObjectRetain" since 11030];
        fn cu_user_object_release(object: CUuserObject, count: c_uint)
            as PFN_cuUserObjectRelease_v11030 = ["cuUserObjectRelease" since 11030];
        fn cu_graph_retain_user_object(graph: CUgraph, object: CUuserObject, count: c_uint, flags: c_uint)
            as PFN_cuGraphRetainUserObject_v11030 = ["cuGraphRetainUserObject" since 11030];
        fn cu_graph_release_user_object(graph: CUgraph, object: CUuserObject, count: c_uint)
            as PFN_cuGraphReleaseUserObject_v11030 = ["cuGraphReleaseUserObject" since 11030];
        fn cu_device_get_graph_mem_attribute(
            device: CUdevice, attr: CUgraphMem_attribute, value: *mut c_void
        )
            as PFN_cuDeviceGetGraphMemAttribute_v11040 = ["cuDeviceGetGraphMemAttribute" since 11040];
        fn cu_device_set_graph_mem_attribute(
            device: CUdevice, attr: CUgraphMem_attribute, value: *mut c_void
        )
            as PFN_cuDeviceSetGraphMemAttribute_v11040 = ["cuDeviceSetGraphMemAttribute" since 11040];
        fn cu_device_graph_mem_trim(device: CUdevice)
            as PFN_cuDeviceGraphMemTrim_v11040 = ["cuDeviceGraphMemTrim" since 11040];
    }
    "group__CUDA__LOGS" {
        fn cu_logs_register_callback(
            callback_func: CUlogsCallback, user_data: *mut c_void, callback: *mut CUlogsCallbackHandle
        )
            as PFN_cuLogsRegisterCallback_v12090 = ["cuLogsRegisterCallback" since 12090];
        fn cu_logs_unregister_callback(callback: CUlogsCallbackHandle)
            as PFN_cuLogsUnregisterCallback_v12090 = ["cuLogsUnregisterCallback" since 12090];
    }
}
