// A pretend accelerator: PyTorch's PrivateUse1 device whose memory is the host's and whose kernels are the CPU's.
//
// What it is strict about is what CUDA is strict about: tensors of two devices do not mix (but for 0-dim host scalars
// and host indices), device tensors have no .numpy(), a generator belongs to a device, and while a graph is captured
// nothing may synchronise with the host, read pageable memory or make a library's handle. Products need deterministic
// settings. It counts kernels, copies and synchronisations.
#define AT_PER_OPERATOR_HEADERS
#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_local_scalar_dense.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/convolution.h>
#include <ATen/ops/convolution_backward.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/set_cpu_dispatch.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/csrc/utils/pybind.h>
#include <torch/library.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <string>

namespace {

using c10::Device;
using c10::DeviceIndex;
using c10::DeviceType;

constexpr DeviceType kind = DeviceType::PrivateUse1;
constexpr DeviceIndex devices = 2;
thread_local DeviceIndex current = 0;

std::mutex guard;
std::map<std::string, int64_t> launched;  // by operator: kernels, "copy:h2d", "copy:d2h", "copy:d2d", "sync"
std::atomic<bool> capturing{false};
thread_local int inside = 0;  // an operator that the fallback computes
std::atomic<int64_t> held{0}, peak{0};

void count(const std::string& what) {
  if (inside) return;
  std::lock_guard<std::mutex> lock(guard);
  ++launched[what];
}

void synchronises(const std::string& what) {
  if (inside) return;
  count("sync");
  TORCH_CHECK(!capturing, what, ": operation not permitted when stream is capturing");
}

// ---- libraries: a thread's first product on a device makes a handle, which no graph may capture ----

thread_local std::set<std::pair<std::string, DeviceIndex>> handles;

void uses_library(const std::string& library, Device place) {
  auto& settings = at::globalContext();
  TORCH_CHECK(settings.deterministicAlgorithms() && !settings.benchmarkCuDNN(), library,
      ": products on the device need deterministic settings");
  const std::pair handle{library, place.index()};
  TORCH_CHECK(!capturing || handles.count(handle), library,
      ": making a handle is not permitted when stream is capturing");
  handles.insert(handle);
}

// ---- memory ----

void release(void* block) {
  if (block == nullptr) return;
  auto* start = static_cast<char*>(block) - 64;
  held -= *reinterpret_cast<int64_t*>(start);
  std::free(start);
}

struct Allocator final : c10::Allocator {
  c10::DataPtr allocate(size_t bytes) override {
    const Device place(kind, current);
    if (bytes == 0) return {nullptr, nullptr, &release, place};
    auto* start = static_cast<char*>(std::aligned_alloc(64, (bytes + 127) / 64 * 64 + 64));
    TORCH_CHECK(start, "pretend: out of memory");
    *reinterpret_cast<int64_t*>(start) = static_cast<int64_t>(bytes);
    held += static_cast<int64_t>(bytes);
    if (held > peak) peak = held.load();
    return {start + 64, start + 64, &release, place};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }
};

Allocator allocator;
REGISTER_ALLOCATOR(kind, &allocator);

// ---- device, streams, events ----

struct Guard final : c10::impl::DeviceGuardImplInterface {
  DeviceType type() const override { return kind; }
  Device exchangeDevice(Device to) const override {
    const Device before(kind, current);
    setDevice(to);
    return before;
  }
  Device getDevice() const override { return Device(kind, current); }
  void setDevice(Device to) const override {
    TORCH_CHECK(to.index() < devices, "pretend: invalid device ordinal ", static_cast<int>(to.index()));
    if (to.index() >= 0) current = to.index();
  }
  void uncheckedSetDevice(Device to) const noexcept override {
    if (to.index() >= 0) current = to.index();
  }
  c10::Stream getStream(Device place) const override { return c10::Stream(c10::Stream::DEFAULT, place); }
  c10::Stream getDefaultStream(Device place) const override { return getStream(place); }
  c10::Stream getNewStream(Device place, int) const override { return getStream(place); }
  c10::Stream getStreamFromGlobalPool(Device place, bool) const override { return getStream(place); }
  c10::Stream exchangeStream(c10::Stream stream) const override { return getStream(stream.device()); }
  DeviceIndex deviceCount() const noexcept override { return devices; }
  void record(void**, const c10::Stream&, const DeviceIndex, const c10::EventFlag) const override {}
  void block(void*, const c10::Stream&) const override {}
  bool queryEvent(void*) const override { return true; }
  void destroyEvent(void*, const DeviceIndex) const noexcept override {}
  bool queryStream(const c10::Stream&) const override { return true; }
  void synchronizeStream(const c10::Stream&) const override {}
  void synchronizeEvent(void*) const override {}
  void synchronizeDevice(const DeviceIndex) const override { synchronises("synchronize"); }
  void recordDataPtrOnStream(const c10::DataPtr&, const c10::Stream&) const override {}
};

C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard);

// ---- generators: a host generator that says it is the device's ----

struct Draws final : c10::GeneratorImpl {
  explicit Draws(DeviceIndex index)
      : c10::GeneratorImpl(Device(kind, index), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1)),
        host(at::detail::createCPUGenerator()) {}
  void set_current_seed(uint64_t seed) override { host.set_current_seed(seed); }
  void set_offset(uint64_t) override { TORCH_CHECK(false, "pretend: generators have no offset"); }
  uint64_t get_offset() const override { TORCH_CHECK(false, "pretend: generators have no offset"); }
  uint64_t current_seed() const override { return host.current_seed(); }
  uint64_t seed() override { return const_cast<at::Generator&>(host).seed(); }
  void set_state(const c10::TensorImpl& state) override { host.unsafeGetGeneratorImpl()->set_state(state); }
  c10::intrusive_ptr<c10::TensorImpl> get_state() const override { return host.unsafeGetGeneratorImpl()->get_state(); }
  Draws* clone_impl() const override {
    auto* copy = new Draws(device().index());
    copy->host = host.clone();
    return copy;
  }
  at::Generator host;
};

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(DeviceIndex) const override { return true; }
  DeviceIndex deviceCount() const override { return devices; }
  void setCurrentDevice(DeviceIndex to) const override { Guard().setDevice(Device(kind, to)); }
  DeviceIndex getCurrentDevice() const override { return current; }
  DeviceIndex exchangeDevice(DeviceIndex to) const override { return Guard().exchangeDevice(Device(kind, to)).index(); }
  DeviceIndex maybeExchangeDevice(DeviceIndex to) const override { return exchangeDevice(to); }
  const at::Generator& getDefaultGenerator(DeviceIndex index) const override {
    static std::vector<at::Generator> all = [] {
      std::vector<at::Generator> made;
      for (DeviceIndex each = 0; each < devices; ++each) made.push_back(at::make_generator<Draws>(each));
      return made;
    }();
    return all[index < 0 ? current : index];
  }
  at::Generator getNewGenerator(DeviceIndex index) const override {
    return at::make_generator<Draws>(index < 0 ? current : index);
  }
  Device getDeviceFromPtr(void*) const override { return Device(kind, current); }
  at::Allocator* getPinnedMemoryAllocator() const override { return at::getCPUAllocator(); }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t bytes) const override {
    at::native::resize_bytes_cpu(storage.unsafeGetStorageImpl(), bytes);
  }
};

// ---- the few operators that must know the memory ----

at::Tensor on_device(const at::Tensor& host, Device place) {  // uncounted: part of an operator
  at::Tensor out = at::empty_like(host, host.options().device(place));
  at::from_blob(out.mutable_data_ptr(), out.sizes(), out.strides(), host.options()).copy_(host);
  return out;
}

at::Tensor on_host(const at::Tensor& x) {  // the same memory as a host tensor
  if (x.device().is_cpu()) return x;
  return at::from_blob(const_cast<void*>(x.const_data_ptr()), x.sizes(), x.strides(), x.options().device(at::kCPU));
}

at::Tensor empty(
    c10::SymIntArrayRef size, std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
    std::optional<at::Device> device, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  const c10::DeviceGuard there(device.value_or(Device(kind, current)));
  return at::detail::empty_generic(
      C10_AS_INTARRAYREF_SLOW(size), &allocator, c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
      c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(
    c10::SymIntArrayRef size, c10::SymIntArrayRef stride, std::optional<at::ScalarType> dtype,
    std::optional<at::Layout>, std::optional<at::Device> device, std::optional<bool>) {
  const c10::DeviceGuard there(device.value_or(Device(kind, current)));
  return at::detail::empty_strided_generic(
      C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride), &allocator,
      c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), c10::dtype_or_default(dtype));
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  const bool up = from.device().is_cpu(), down = to.device().is_cpu();
  if (up || down) {
    count(up ? "copy:h2d" : "copy:d2h");
    if (up && !non_blocking) count("wait:h2d");
    if (!non_blocking || capturing) synchronises(up ? "copy from pageable host memory" : "copy to the host");
  } else {
    count("copy:d2d");
  }
  on_host(to).copy_(on_host(from));
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  if (to.sizes() != from.sizes()) to.resize_(from.sizes());
  on_host(to).copy_(on_host(from));  // only the fallback comes here: not counted
  return to;
}

at::Scalar local_scalar_dense(const at::Tensor& x) {
  synchronises("item");
  return at::_local_scalar_dense(on_host(x));
}

const at::Tensor& resize(const at::Tensor& x, c10::SymIntArrayRef size, std::optional<at::MemoryFormat> format) {
  return at::native::resize_(x, C10_AS_INTARRAYREF_SLOW(size), format);
}

at::Tensor as_strided(
    const at::Tensor& x, c10::SymIntArrayRef size, c10::SymIntArrayRef stride, std::optional<c10::SymInt> offset) {
  const std::optional<int64_t> begin = offset ? std::optional(offset->expect_int()) : std::nullopt;
  return at::native::as_strided_tensorimpl(x, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride), begin);
}

at::Tensor view(const at::Tensor& x, c10::SymIntArrayRef size) {
  return at::native::view(x, C10_AS_INTARRAYREF_SLOW(size));
}

at::Tensor reshape_alias(const at::Tensor& x, c10::SymIntArrayRef size, c10::SymIntArrayRef stride) {
  return at::native::_reshape_alias(x, C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride));
}

at::Tensor& set_storage(
    at::Tensor& x, at::Storage storage, c10::SymInt offset, c10::SymIntArrayRef size, c10::SymIntArrayRef stride) {
  return at::cpu::set_(
      x, storage, offset.expect_int(), C10_AS_INTARRAYREF_SLOW(size), C10_AS_INTARRAYREF_SLOW(stride));
}

at::Tensor unfold(const at::Tensor& x, int64_t dimension, int64_t size, int64_t step) {
  return at::native::unfold(x, dimension, size, step);
}

at::Tensor convolution(
    const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias, c10::SymIntArrayRef stride,
    c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation, bool transposed, c10::SymIntArrayRef output_padding,
    c10::SymInt groups) {
  count("convolution");
  uses_library("cudnn", x.device());
  const at::AutoDispatchBelowADInplaceOrView below;
  TORCH_CHECK(weight.device() == x.device(), "Expected all tensors to be on the same device (convolution)");
  std::optional<at::Tensor> shift;
  if (bias && bias->defined()) shift = on_host(*bias);
  const at::Tensor out = at::convolution_symint(
      on_host(x), on_host(weight), shift, stride, padding, dilation, transposed, output_padding, groups);
  return on_device(out, x.device());
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(
    const at::Tensor& error, const at::Tensor& x, const at::Tensor& weight, c10::SymIntArrayRef stride,
    c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation, bool transposed, c10::SymIntArrayRef output_padding,
    c10::SymInt groups, std::array<bool, 3> wanted) {
  for (const bool each : wanted) {
    if (each) count("convolution_backward");
  }
  uses_library("cudnn", x.device());
  const at::AutoDispatchBelowADInplaceOrView below;
  const std::vector<c10::SymInt> bias{error.sym_size(1)};
  auto [dx, dw, db] = at::convolution_backward_symint(
      on_host(error), on_host(x), on_host(weight), c10::SymIntArrayRef(bias), stride, padding, dilation, transposed,
      output_padding, groups, wanted);
  const auto back = [&](const at::Tensor& each) { return each.defined() ? on_device(each, x.device()) : each; };
  return {back(dx), back(dw), back(db)};
}

// ---- everything else: checked, counted, and done by the CPU's kernel ----

const std::set<std::string> waits = {
    "aten::nonzero", "aten::masked_select", "aten::_unique2", "aten::unique_dim", "aten::unique_consecutive",
    "aten::bincount", "aten::equal", "aten::repeat_interleave", "aten::is_nonzero", "aten::_assert_async"};
const std::set<std::string> products = {
    "aten::mm", "aten::addmm", "aten::_addmm_activation", "aten::bmm", "aten::baddbmm", "aten::addbmm", "aten::mv",
    "aten::addmv", "aten::addr", "aten::dot", "aten::vdot"};

void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const std::string name = op.schema().name();
  const bool indexing = name.find("index_put") != std::string::npos || name == "aten::index" ||
      name == "aten::_unsafe_index";
  const auto arguments = op.schema().arguments().size();
  const auto start = stack->size() - arguments;
  std::optional<Device> place;
  std::vector<at::Tensor> strangers;
  const auto look = [&](const at::Tensor& x, bool index) {
    if (!x.defined()) return;
    if (x.device().is_cpu()) {
      if (x.dim() > 0 && !index) strangers.push_back(x);
      return;
    }
    TORCH_CHECK(!place || *place == x.device(), "Expected all tensors to be on the same device, but found at least two "
        "devices, ", *place, " and ", x.device(), "! (", name, ")");
    place = x.device();
  };
  bool masks = false, host_index = false;
  for (size_t position = 0; position < arguments; ++position) {
    auto& value = (*stack)[start + position];
    if (value.isTensor()) {
      look(value.toTensor(), false);
    } else if (value.isTensorList()) {
      for (const at::Tensor& each : value.toTensorVector()) look(each, indexing);
    } else if (value.isOptionalTensorList()) {
      for (const std::optional<at::Tensor>& each : value.toOptionalTensorVector()) {
        if (!each || !each->defined()) continue;
        look(*each, indexing);
        host_index = host_index || each->device().is_cpu();
        masks = masks || each->scalar_type() == at::kBool || each->scalar_type() == at::kByte;
      }
    }
  }
  TORCH_CHECK(strangers.empty() || !place, "Expected all tensors to be on the same device, but found at least two "
      "devices, ", *place, " and cpu! (", name, ")");
  for (size_t position = 0; position < arguments; ++position) {
    auto& value = (*stack)[start + position];
    if (!value.isGenerator()) continue;
    const at::Generator draws = value.toGenerator();
    TORCH_CHECK(draws.device().type() == kind, "Expected a 'pretend' device type for generator but found '",
        draws.device().type(), "' (", name, ")");
    value = static_cast<Draws*>(draws.unsafeGetGeneratorImpl())->host;
  }
  const bool waited = waits.count(name) || (indexing && masks);
  if (waited) synchronises(name);
  if (indexing && place && host_index) synchronises("an index on the host");
  if (place && products.count(name)) uses_library("cublas", *place);
  count(name);
  ++inside;  // what the fallback copies is not the program's
  try {
    at::native::cpu_fallback(op, stack);
  } catch (...) {
    --inside;
    throw;
  }
  --inside;
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", &empty);
  m.impl("empty_strided", &empty_strided);
  m.impl("_copy_from", &copy_from);
  m.impl("_copy_from_and_resize", &copy_from_and_resize);
  m.impl("_local_scalar_dense", &local_scalar_dense);
  m.impl("resize_", &resize);
  m.impl("as_strided", &as_strided);
  m.impl("view", &view);
  m.impl("_reshape_alias", &reshape_alias);
  m.impl("set_.source_Storage_storage_offset", &set_storage);
  m.impl("unfold", &unfold);
  m.impl("convolution_overrideable", &convolution);
  m.impl("convolution_backward_overrideable", &convolution_backward);
  // else PyTorch composes it of views, which images with their channels last do not have
  m.impl("native_group_norm", torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

struct Registration {
  Registration() {
    static Hooks hooks;
    at::RegisterPrivateUse1HooksInterface(&hooks);
  }
} registration;

}  // namespace

PYBIND11_MODULE(_pretend, m) {
  m.def("counts", [] {
    std::lock_guard<std::mutex> lock(guard);
    return launched;
  });
  m.def("reset_counts", [] {
    std::lock_guard<std::mutex> lock(guard);
    launched.clear();
  });
  m.def("default_generator", [](int index) {
    return at::globalContext().defaultGenerator(Device(kind, static_cast<DeviceIndex>(index)));
  });
  m.def("generator_id", [](const at::Generator& draws) {
    return reinterpret_cast<int64_t>(draws.unsafeGetGeneratorImpl());
  });
  m.def("capture", [](bool on) { capturing = on; });
  m.def("note_wait", [] { count("sync"); });
  m.def("is_capturing", [] { return capturing.load(); });
  m.def("device_count", [] { return static_cast<int>(devices); });
  m.def("current_device", [] { return static_cast<int>(current); });
  m.def("set_device", [](int to) { Guard().setDevice(Device(kind, static_cast<DeviceIndex>(to))); });
  m.def("held_bytes", [] { return held.load(); });
  m.def("peak_bytes", [] { return peak.load(); });
  m.def("reset_peak", [] { peak = held.load(); });
}
