#include "graph/data.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

namespace coil {
namespace {

template <class T>
T load(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class T>
void store(std::byte* to, T value) {
  std::memcpy(to, &value, sizeof value);
}

/// The shortest decimal that reads back as the same f32.
std::string f32_text(float value) {
  if (!std::isfinite(value)) return float_text(value);
  const std::string text = str("{}", value);
  return text.find_first_of(".e") == text.npos ? text + ".0" : text;
}

double load_float(DType dtype, const std::byte* at) {
  switch (dtype) {
    case DType::f64: return load<double>(at);
    case DType::f32: return load<float>(at);
    case DType::f16: return f16_to_f32(load<u16>(at));
    case DType::bf16: return bf16_to_f32(load<u16>(at));
    case DType::f8e4m3fn: return f8e4m3fn_to_f32(load<u8>(at));
    default: return f8e5m2_to_f32(load<u8>(at));
  }
}

void store_float(DType dtype, std::byte* at, double value) {
  const float narrow = static_cast<float>(value);
  switch (dtype) {
    case DType::f64: return store(at, value);
    case DType::f32: return store(at, narrow);
    case DType::f16: return store(at, f32_to_f16(narrow));
    case DType::bf16: return store(at, f32_to_bf16(narrow));
    case DType::f8e4m3fn: return store(at, f32_to_f8e4m3fn(narrow));
    default: return store(at, f32_to_f8e5m2(narrow));
  }
}

/// Integers as the bits of a u64, sign-extended where the dtype has one.
u64 load_integer(DType dtype, const std::byte* at) {
  switch (dtype) {
    case DType::i8: return static_cast<u64>(i64{load<i8>(at)});
    case DType::i16: return static_cast<u64>(i64{load<i16>(at)});
    case DType::i32: return static_cast<u64>(i64{load<i32>(at)});
    case DType::u8: return load<u8>(at);
    case DType::u16: return load<u16>(at);
    case DType::u32: return load<u32>(at);
    default: return load<u64>(at);
  }
}

void store_integer(DType dtype, std::byte* at, u64 bits) {
  switch (size_of(dtype)) {
    case 1: return store(at, static_cast<u8>(bits));
    case 2: return store(at, static_cast<u16>(bits));
    case 4: return store(at, static_cast<u32>(bits));
    default: return store(at, bits);
  }
}

Status read_float(TextReader& in, DType dtype, std::byte* out) {
  store_float(dtype, out, COIL_TRY(in.number()));
  return Ok{};
}

Status read_integer(TextReader& in, DType dtype, std::byte* out) {
  const bool negative = in.at("-");
  if (!negative && dtype == DType::u64 && in.peek().kind == TokenKind::Integer) {
    const std::string_view digits = in.peek().text;
    u64 value = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (read.ec == std::errc{} && value > static_cast<u64>(INT64_MAX)) {
      // The reader's own integers are signed; this one is known to be one plain token.
      store(out, value);
      COIL_TRY(in.number());
      return Ok{};
    }
  }
  const int line = in.line();
  const i64 value = COIL_TRY(in.integer());
  store_integer(dtype, out, static_cast<u64>(value));
  const bool fits =
      load_integer(dtype, out) == static_cast<u64>(value) && (value >= 0 || !is_unsigned(dtype));
  if (!fits) return in.error_at(line, str("{} does not fit {}", value, name(dtype)));
  return Ok{};
}

Status read_bool(TextReader& in, std::byte* out) {
  bool value = in.accept("true");
  if (!value && !in.accept("false")) {
    const int line = in.line();
    const i64 number = COIL_TRY(in.integer());
    if (number != 0 && number != 1) return in.error_at(line, "a bool is true, false, 0 or 1");
    value = number == 1;
  }
  store(out, static_cast<u8>(value));
  return Ok{};
}

class Random {
 public:
  explicit Random(u64 seed) : state_(seed) {}

  u64 bits() {  // SplitMix64
    u64 z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  double normal() {
    const double u = (static_cast<double>(bits() >> 11) + 0.5) * 0x1p-53;
    const double v = static_cast<double>(bits() >> 11) * 0x1p-53;
    return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
  }

 private:
  u64 state_;
};

void store_random(Random& random, DType dtype, std::byte* at) {
  switch (class_of(dtype)) {
    case DTypeClass::Float: return store_float(dtype, at, random.normal());
    case DTypeClass::Bool: return store(at, static_cast<u8>(random.bits() & 1));
    case DTypeClass::Signed:
    case DTypeClass::Unsigned: return store_integer(dtype, at, random.bits() % 10);
    case DTypeClass::Complex:
      store_float(real_of(dtype), at, random.normal());
      store_float(real_of(dtype), at + size_of(dtype) / 2, random.normal());
  }
}

}  // namespace

std::string element_text(DType dtype, const std::byte* element) {
  switch (class_of(dtype)) {
    case DTypeClass::Bool: return load<u8>(element) != 0 ? "true" : "false";
    case DTypeClass::Unsigned: return str("{}", load_integer(dtype, element));
    case DTypeClass::Signed: return str("{}", static_cast<i64>(load_integer(dtype, element)));
    case DTypeClass::Float:
      if (dtype == DType::f64) return float_text(load<double>(element));
      return f32_text(static_cast<float>(load_float(dtype, element)));
    case DTypeClass::Complex: {
      const DType part = real_of(dtype);
      return str("({}, {})", element_text(part, element),
                 element_text(part, element + size_of(dtype) / 2));
    }
  }
  COIL_UNREACHABLE();
}

Status read_element(TextReader& in, DType dtype, std::byte* out) {
  switch (class_of(dtype)) {
    case DTypeClass::Bool: return read_bool(in, out);
    case DTypeClass::Unsigned:
    case DTypeClass::Signed: return read_integer(in, dtype, out);
    case DTypeClass::Float: return read_float(in, dtype, out);
    case DTypeClass::Complex: break;
  }
  COIL_TRY(in.expect("("));
  COIL_TRY(read_float(in, real_of(dtype), out));
  COIL_TRY(in.expect(","));
  COIL_TRY(read_float(in, real_of(dtype), out + size_of(dtype) / 2));
  return in.expect(")");
}

Storage inline_storage(std::span<const std::byte> bytes) {
  auto owner = std::make_shared<std::vector<std::byte>>(bytes.begin(), bytes.end());
  Storage storage;
  storage.data = owner->data();
  storage.bytes = static_cast<i64>(bytes.size());
  storage.owner = std::move(owner);
  return storage;
}

Storage seeded_storage(DType dtype, u64 seed, i64 count) {
  const i64 size = size_of(dtype);
  auto owner = std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(count * size));
  Random random(seed);
  for (i64 i = 0; i < count; ++i) store_random(random, dtype, owner->data() + i * size);
  Storage storage;
  storage.source = StorageSource::Seed;
  storage.seed = seed;
  storage.data = owner->data();
  storage.bytes = count * size;
  storage.owner = std::move(owner);
  return storage;
}

}  // namespace coil
