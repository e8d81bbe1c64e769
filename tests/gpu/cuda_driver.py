"""The few calls of the CUDA driver that a launch needs, through ctypes: no torch, no toolkit."""

import ctypes


class CudaError(RuntimeError):
    pass


class Driver:
    """One device and its primary context."""

    def __init__(self, device=0):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        handle = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(handle), device)
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), handle)
        self.call("cuCtxSetCurrent", context)
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(major), 75, handle)  # compute capability
        self.call("cuDeviceGetAttribute", ctypes.byref(minor), 76, handle)
        self.capability = 10 * major.value + minor.value
        name = ctypes.create_string_buffer(200)
        self.call("cuDeviceGetName", name, 200, handle)
        self.name = name.value.decode()

    def call(self, function, *arguments):
        status = getattr(self.cuda, function)(*arguments)
        if status != 0:
            text = ctypes.c_char_p()
            self.cuda.cuGetErrorString(status, ctypes.byref(text))
            raise CudaError(f"{function}: {(text.value or b'?').decode()} ({status})")

    def allocate(self, size):
        pointer = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(16, size)))
        return pointer

    def free(self, pointer):
        self.call("cuMemFree_v2", pointer)

    def upload(self, array):
        pointer = self.allocate(array.nbytes)
        if array.nbytes:
            self.call("cuMemcpyHtoD_v2", pointer, ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes))
        return pointer

    def download(self, array, pointer):
        if array.nbytes:
            self.call("cuMemcpyDtoH_v2", ctypes.c_void_p(array.ctypes.data), pointer, ctypes.c_size_t(array.nbytes))

    def load(self, cubin, name, shared):
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), cubin)
        self.call("cuModuleGetFunction", ctypes.byref(function), module, name.encode())
        if shared > 48 * 1024:
            self.call("cuFuncSetAttribute", function, 8, shared)  # most dynamic shared memory
        return function

    def launch(self, function, programs, threads, shared, arguments):
        """`arguments`: ctypes values, in order. Returns when it is queued."""
        pointers = (ctypes.c_void_p * len(arguments))(*[ctypes.addressof(a) for a in arguments])
        self.call("cuLaunchKernel", function, programs, 1, 1, threads, 1, 1, shared, None, pointers, None)

    def synchronize(self):
        self.call("cuCtxSynchronize")

    def milliseconds(self, work, repeats):
        """The least time of `repeats` runs of `work`, by events."""
        first, last = ctypes.c_void_p(), ctypes.c_void_p()
        for event in (first, last):
            self.call("cuEventCreate", ctypes.byref(event), 0)
        least = float("inf")
        for _ in range(repeats):
            self.call("cuEventRecord", first, None)
            work()
            self.call("cuEventRecord", last, None)
            self.call("cuEventSynchronize", last)
            elapsed = ctypes.c_float()
            self.call("cuEventElapsedTime", ctypes.byref(elapsed), first, last)
            least = min(least, elapsed.value)
        return least
