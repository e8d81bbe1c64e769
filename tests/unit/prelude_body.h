// The tests of the kernel prelude, included by one file for each way of compiling it. That file
// defines COIL_KERNEL_NAMESPACE and SUITE, and PRELUDE_RUNS, whether this machine has the
// instructions.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "base/dtype.h"

#include "target/cpp/prelude/prelude.h"

#define PRELUDE_NAME2(a, b) a##b
#define PRELUDE_NAME(a, b) PRELUDE_NAME2(a, b)
#define PRELUDE_TEST(name)                         \
  static void PRELUDE_NAME(run_, name)();          \
  TEST(SUITE, name) {                              \
    if (!PRELUDE_RUNS) GTEST_SKIP();               \
    PRELUDE_NAME(run_, name)();                    \
  }                                                \
  static void PRELUDE_NAME(run_, name)()

namespace COIL_KERNEL_NAMESPACE {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

template <class T>
bool same(T a, T b) {
  if (a != a || b != b) return a != a && b != b;
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

template <class T>
std::vector<T> interesting() {
  std::vector<T> values;
  std::mt19937_64 random(7);
  if constexpr (kIsFloat<T>) {
    for (double x : {0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 3.0, 1e-40, -1e-40,
                     0.4999999701976776, 8388607.5, 8388609.0, 4503599627370495.5, 127.0, 128.0,
                     255.0, 256.0, -129.0, 65504.0, 65520.0, 448.0, 464.0, 465.0, 1e9, -1e9,
                     2147483648.0, -2147483648.0, 4294967295.0, 9.3e18, 1.9e19, -3e19, 1e30}) {
      values.push_back(static_cast<T>(x));
    }
    values.push_back(std::numeric_limits<T>::infinity());
    values.push_back(-std::numeric_limits<T>::infinity());
    values.push_back(std::numeric_limits<T>::quiet_NaN());
    values.push_back(std::numeric_limits<T>::max());
    values.push_back(std::numeric_limits<T>::denorm_min());
  } else {
    for (int x : {0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 63, 64, 100}) values.push_back(T(x));
    values.push_back(std::numeric_limits<T>::max());
    values.push_back(std::numeric_limits<T>::min());
    values.push_back(T(-1));
    values.push_back(T(-3));
  }
  while (values.size() % 16 != 0 || values.size() < 64) {
    u64 bits = random();
    T value;
    std::memcpy(&value, &bits, sizeof(T));
    values.push_back(value);
  }
  return values;
}

/// Calls check(a, b) for vectors that pair every interesting value with every other.
template <class T, class F>
void for_pairs(F check) {
  std::vector<T> values = interesting<T>();
  for (size_t i = 0; i < values.size(); i += 16) {
    for (T b : values) check(load(&values[i]), splat16(b));
  }
}

template <class T>
void lanes_of(vec<T, 16> v, T* out) {
  to_array(v, out);
}
void lanes_of(mask16 v, bool* out) { to_array(v, out); }

/// The vector form of `f` gives what the scalar form gives, and what `reference` says.
#define CHECK_BINARY(T, R, NAME, REFERENCE)                                                    \
  for_pairs<T>([](vec<T, 16> a, vec<T, 16> b) {                                                \
    T x[16], y[16];                                                                            \
    R got[16];                                                                                 \
    lanes_of(a, x);                                                                            \
    lanes_of(b, y);                                                                            \
    lanes_of(NAME(a, b), got);                                                                 \
    for (int i = 0; i < 16; ++i) {                                                             \
      const T p = x[i], q = y[i];                                                              \
      const R want = REFERENCE;                                                                \
      ASSERT_TRUE(same<R>(got[i], want)) << #NAME << " " << #T << " " << +p << ", " << +q      \
                                         << ": " << +got[i] << " not " << +want;               \
      ASSERT_TRUE(same<R>(NAME(p, q), want)) << "scalar " << #NAME << " " << #T << " " << +p   \
                                             << ", " << +q;                                    \
    }                                                                                          \
  });

template <class T>
T wrap_mul(T a, T b) {
  return T(static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(b));
}

template <class T>
void check_integers() {
  using W = __int128;
  CHECK_BINARY(T, T, add, T(W(p) + W(q)))
  CHECK_BINARY(T, T, sub, T(W(p) - W(q)))
  CHECK_BINARY(T, T, mul, wrap_mul(p, q))
  CHECK_BINARY(T, T, min, (p < q ? p : q))
  CHECK_BINARY(T, T, max, (p > q ? p : q))
  CHECK_BINARY(T, T, bit_and, T(p & q))
  CHECK_BINARY(T, T, bit_or, T(p | q))
  CHECK_BINARY(T, T, bit_xor, T(p ^ q))
  CHECK_BINARY(T, T, div, (q == 0 ? T(0) : T(W(p) / W(q))))
  CHECK_BINARY(T, T, truncdiv, (q == 0 ? T(0) : T(W(p) / W(q))))
  CHECK_BINARY(T, T, fmod, (q == 0 ? T(0) : T(W(p) % W(q))))
  CHECK_BINARY(T, T, remainder, (q == 0 ? T(0) : T(((W(p) % W(q)) + W(q)) % W(q))))
  CHECK_BINARY(T, T, floordiv,
               (q == 0 ? T(0) : T((W(p) - ((W(p) % W(q)) + W(q)) % W(q)) / W(q))))
  constexpr W kBits = 8 * sizeof(T);
  CHECK_BINARY(T, T, shl, (W(q) < 0 || W(q) >= kBits ? T(0) : T(W(p) << int(q))))
  CHECK_BINARY(T, T, shr, (W(q) < 0 || W(q) >= kBits ? T(p < 0 ? -1 : 0) : T(W(p) >> int(q))))
  CHECK_BINARY(T, bool, eq, p == q)
  CHECK_BINARY(T, bool, ne, p != q)
  CHECK_BINARY(T, bool, lt, p < q)
  CHECK_BINARY(T, bool, le, p <= q)
  CHECK_BINARY(T, bool, gt, p > q)
  CHECK_BINARY(T, bool, ge, p >= q)
  for (T p : interesting<T>()) {
    vec<T, 16> v = splat16(p);
    EXPECT_EQ(get_lane(neg(v), 3), T(-W(p)));
    EXPECT_EQ(get_lane(abs(v), 9), T(p < 0 ? -W(p) : W(p)));
    EXPECT_EQ(get_lane(bit_not(v), 15), T(~p));
    EXPECT_EQ(get_lane(sign(v), 0), T(p > 0 ? 1 : p < 0 ? -1 : 0));
    EXPECT_EQ(neg(p), T(-W(p)));
    EXPECT_EQ(abs(p), T(p < 0 ? -W(p) : W(p)));
  }
}

PRELUDE_TEST(IntegersWrapAndNeverTrap) {
  check_integers<i8>();
  check_integers<u8>();
  check_integers<i16>();
  check_integers<u16>();
  check_integers<i32>();
  check_integers<u32>();
  check_integers<i64>();
  check_integers<u64>();
}

template <class T>
T python_floordiv(T a, T b) {
  if (b == 0) return a / b;
  T mod = std::fmod(a, b), div = (a - mod) / b;
  if (mod != 0 && (b < 0) != (mod < 0)) div -= 1;
  if (div == 0) return std::copysign(T(0), a / b);
  T whole = std::floor(div);
  return div - whole > T(0.5) ? whole + 1 : whole;
}
template <class T>
T python_remainder(T a, T b) {
  T mod = std::fmod(a, b);
  return mod != 0 && (b < 0) != (mod < 0) ? mod + b : mod;
}

template <class T>
void check_floats() {
  CHECK_BINARY(T, T, add, p + q)
  CHECK_BINARY(T, T, sub, p - q)
  CHECK_BINARY(T, T, mul, p* q)
  CHECK_BINARY(T, T, div, p / q)
  CHECK_BINARY(T, T, copysign, std::copysign(p, q))
  CHECK_BINARY(T, T, nextafter, std::nextafter(p, q))
  CHECK_BINARY(T, T, atan2, std::atan2(p, q))
  CHECK_BINARY(T, T, hypot, std::hypot(p, q))
  CHECK_BINARY(T, T, fmod, std::fmod(p, q))
  CHECK_BINARY(T, T, remainder, python_remainder(p, q))
  CHECK_BINARY(T, T, floordiv, python_floordiv(p, q))
  CHECK_BINARY(T, T, truncdiv, std::trunc(p / q))
  CHECK_BINARY(T, T, min, (p != p ? p : q != q ? q : q < p ? q : p))
  CHECK_BINARY(T, T, max, (p != p ? p : q != q ? q : q > p ? q : p))
  CHECK_BINARY(T, T, fmin, (p != p ? q : q < p ? q : p))
  CHECK_BINARY(T, T, fmax, (p != p ? q : q > p ? q : p))
  CHECK_BINARY(T, bool, eq, p == q)
  CHECK_BINARY(T, bool, ne, p != q)
  CHECK_BINARY(T, bool, lt, p < q)
  CHECK_BINARY(T, bool, le, p <= q)
  CHECK_BINARY(T, bool, gt, p > q)
  CHECK_BINARY(T, bool, ge, p >= q)
  for_pairs<T>([](vec<T, 16> a, vec<T, 16> b) {
    T x[16], y[16], got[16];
    lanes_of(a, x);
    lanes_of(b, y);
    lanes_of(fma(a, b, neg(mul(a, b))), got);
    for (int i = 0; i < 16; ++i) {
      ASSERT_TRUE(same(got[i], std::fma(x[i], y[i], -(x[i] * y[i])))) << x[i] << " * " << y[i];
    }
  });
#define CHECK_UNARY(NAME, REFERENCE)                                                      \
  ASSERT_TRUE(same<T>(get_lane(NAME(splat16(p)), 5), REFERENCE)) << #NAME << " " << p     \
                                                                 << " gives "             \
                                                                 << get_lane(NAME(splat16(p)), 5); \
  ASSERT_TRUE(same<T>(NAME(p), REFERENCE)) << #NAME << " scalar " << p;
  std::vector<T> values = interesting<T>();
  for (int i = -40; i <= 40; ++i) values.push_back(T(i) / 8);
  for (T p : values) {
    CHECK_UNARY(neg, -p)
    CHECK_UNARY(abs, std::fabs(p))
    CHECK_UNARY(sqrt, std::sqrt(p))
    CHECK_UNARY(rsqrt, 1 / std::sqrt(p))
    CHECK_UNARY(floor, std::floor(p))
    CHECK_UNARY(ceil, std::ceil(p))
    CHECK_UNARY(trunc, std::trunc(p))
    CHECK_UNARY(round, std::nearbyint(p))
    CHECK_UNARY(sign, (p > 0 ? T(1) : p < 0 ? T(-1) : T(0)))
    CHECK_UNARY(tan, std::tan(p))
    CHECK_UNARY(asin, std::asin(p))
    CHECK_UNARY(acosh, std::acosh(p))
    CHECK_UNARY(erfc, std::erfc(p))
    EXPECT_EQ(isnan(p), std::isnan(p));
    EXPECT_EQ(get_lane(isnan(splat16(p)), 1), std::isnan(p));
    EXPECT_EQ(get_lane(isinf(splat16(p)), 1), std::isinf(p));
    EXPECT_EQ(get_lane(signbit(splat16(p)), 1), std::signbit(p));
  }
#undef CHECK_UNARY
}

PRELUDE_TEST(FloatArithmeticIsIeee) {
  check_floats<f32>();
  check_floats<f64>();
}

/// What x86 conversions give, stated by ranges.
template <class To, class From>
To cast_reference(From x) {
  if constexpr (kIsFloat<From> && !kIsFloat<To>) {
    const auto to_i64 = [](From y) {
      return y >= From(-0x1p63) && y < From(0x1p63) ? i64(y) : std::numeric_limits<i64>::min();
    };
    if constexpr (kSame<To, u64>) {
      return x >= From(0x1p63) ? u64(to_i64(x - From(0x1p63))) ^ (u64(1) << 63) : u64(to_i64(x));
    } else if constexpr (kSame<To, i64> || kSame<To, u32>) {
      return To(to_i64(x));
    } else {
      const bool fits = double(x) > -2147483649.0 && double(x) < 2147483648.0;
      return To(fits ? i32(x) : std::numeric_limits<i32>::min());
    }
  } else {
    return To(x);
  }
}

template <class From, class To>
void check_cast() {
  std::vector<From> values = interesting<From>();
  for (size_t i = 0; i < values.size(); i += 16) {
    To got[16];
    lanes_of(cast<To>(load(&values[i])), got);
    for (int j = 0; j < 16; ++j) {
      const From x = values[i + j];
      ASSERT_TRUE(same<To>(got[j], cast_reference<To>(x)))
          << +x << " -> " << sizeof(To) << (kIsFloat<To> ? "f " : "i ") << +got[j] << " not "
          << +cast_reference<To>(x);
      ASSERT_TRUE(same<To>(cast<To>(x), cast_reference<To>(x))) << "scalar " << +x;
      ASSERT_EQ(get_lane(cast<bool>(load(&values[i])), j), x != 0);
      ASSERT_EQ(get_lane(cast<To>(ne(load(&values[i]), splat16(From(0)))), j), To(x != 0));
    }
  }
}
template <class From>
void check_casts_from() {
  check_cast<From, i8>();
  check_cast<From, u8>();
  check_cast<From, i16>();
  check_cast<From, u16>();
  check_cast<From, i32>();
  check_cast<From, u32>();
  check_cast<From, i64>();
  check_cast<From, u64>();
  check_cast<From, f32>();
  check_cast<From, f64>();
}
PRELUDE_TEST(CastsMatchStaticCastOnX86) {
  check_casts_from<i8>();
  check_casts_from<u8>();
  check_casts_from<i16>();
  check_casts_from<u16>();
  check_casts_from<i32>();
  check_casts_from<u32>();
  check_casts_from<i64>();
  check_casts_from<u64>();
  check_casts_from<f32>();
  check_casts_from<f64>();
}

// ---- elementary functions ----

double ulps(float got, long double want) {
  if (std::isnan(want)) return std::isnan(got) ? 0 : 1e9;
  const float rounded = static_cast<float>(want);
  if (std::isinf(rounded) || std::isinf(got)) {
    return got == rounded || std::fabs(want) > 3.40282346e38L * 0.9999999L ? 0 : 1e9;
  }
  if (rounded == 0 && got == 0) return 0;
  int exponent = 0;
  std::frexp(want, &exponent);
  const int scale = exponent - 24 < -149 ? -149 : exponent - 24;
  return std::fabs(double((got - want) / std::ldexp(1.0L, scale)));
}

template <class F, class R>
void check_accuracy(const char* name, F vector_form, R reference, float low, float high,
                    double limit = 4.0) {
  std::vector<float> values = {0.0f, -0.0f, kInf, -kInf, kNan, 1e-40f, -1e-40f, 1.0f, -1.0f};
  std::mt19937 random(11);
  std::uniform_real_distribution<float> uniform(low, high);
  for (int i = 0; i < 60000; ++i) values.push_back(uniform(random));
  for (int i = 0; i < 60000; ++i) {  // every exponent
    u32 bits = random();
    float x;
    std::memcpy(&x, &bits, 4);
    if (!(x == x)) continue;
    values.push_back(x);
  }
  while (values.size() % 16) values.push_back(0.25f);
  double worst = 0;
  float worst_at = 0;
  for (size_t i = 0; i < values.size(); i += 16) {
    float got[16];
    lanes_of(vector_form(load(&values[i])), got);
    for (int j = 0; j < 16; ++j) {
      const double error = ulps(got[j], reference(static_cast<long double>(values[i + j])));
      if (error > worst) {
        worst = error;
        worst_at = values[i + j];
      }
    }
    ASSERT_TRUE(same(vector_form(values[i]), got[0])) << name << " scalar " << values[i];
  }
  EXPECT_LE(worst, limit) << name << " at " << worst_at << ": "
                          << get_lane(vector_form(splat16(worst_at)), 0) << " not "
                          << double(reference(worst_at));
  ::testing::Test::RecordProperty(name, std::to_string(worst));
}
#define CHECK_MATH(NAME, REF, LOW, HIGH) \
  check_accuracy(#NAME, [](auto x) { return NAME(x); }, [](long double x) { return REF(x); }, LOW, HIGH);

PRELUDE_TEST(ElementaryFunctionsAreWithin4Ulp) {
  CHECK_MATH(exp, std::exp, -110.0f, 95.0f)
  CHECK_MATH(exp2, std::exp2, -155.0f, 132.0f)
  CHECK_MATH(expm1, std::expm1, -3.0f, 3.0f)
  CHECK_MATH(log, std::log, 0.3f, 3.0f)
  CHECK_MATH(log2, std::log2, 0.3f, 3.0f)
  CHECK_MATH(log10, std::log10, 0.3f, 3.0f)
  CHECK_MATH(log1p, std::log1p, -1.0f, 3.0f)
  CHECK_MATH(tanh, std::tanh, -10.0f, 10.0f)
  CHECK_MATH(erf, std::erf, -4.5f, 4.5f)
  CHECK_MATH(sin, std::sin, -100.0f, 100.0f)
  CHECK_MATH(cos, std::cos, -100.0f, 100.0f)
  CHECK_MATH(sin, std::sin, -1e6f, 1e6f)
  CHECK_MATH(erfc, std::erfc, -3.0f, 10.0f)
  CHECK_MATH(lgamma, std::lgamma, 3.0f, 40.0f)
}

PRELUDE_TEST(PowIsWithin4UlpAndHasTheCornersOfC) {
  std::mt19937 random(5);
  std::uniform_real_distribution<float> base(0.0f, 4.0f), exponent(-30.0f, 30.0f);
  double worst = 0;
  for (int i = 0; i < 4000; ++i) {
    float x[16], y[16], got[16];
    for (int j = 0; j < 16; ++j) {
      x[j] = base(random);
      y[j] = exponent(random);
    }
    lanes_of(pow(load(x), load(y)), got);
    for (int j = 0; j < 16; ++j) {
      worst = std::max(worst, ulps(got[j], std::pow((long double)x[j], (long double)y[j])));
    }
  }
  EXPECT_LE(worst, 4.0);
  std::vector<float> corners = interesting<float>();
  for (int i = -6; i < 7; ++i) corners.push_back(float(i));
  for (float x : corners) {
    for (float y : corners) {
      const float got = get_lane(pow(splat16(x), splat16(y)), 7);
      const float want = std::pow(x, y);
      ASSERT_TRUE(same(got, want) || (got == got && got != 0 && ulps(got, want) <= 4))
          << x << " ^ " << y << ": " << got << " not " << want;
      ASSERT_TRUE(same(got, pow(x, y)));
    }
  }
  EXPECT_EQ(pow(i32(-3), i32(5)), -243);
  EXPECT_EQ(pow(i32(2), i32(-1)), 0);
  EXPECT_EQ(pow(i8(-1), i8(-3)), -1);
  EXPECT_EQ(get_lane(pow(splat16(u8(3)), splat16(u8(6))), 0), u8(729));
}

PRELUDE_TEST(InverseErrorFunctionAndDigamma) {
  for (int i = -9999; i < 10000; ++i) {
    const double y = i / 10000.0;
    ASSERT_NEAR(std::erf(erfinv(y)), y, 4e-16) << y;
  }
  for (double tail : {1e-3, 1e-8, 1e-14}) {
    ASSERT_NEAR(std::erfc(erfinv(1 - tail)) / (1 - (1 - tail)), 1, 1e-13) << tail;
  }
  EXPECT_TRUE(std::isinf(erfinv(1.0f)) && std::isnan(erfinv(1.5)) && erfinv(-0.0f) == 0);
  EXPECT_NEAR(digamma(1.0), -0.57721566490153286, 1e-15);
  EXPECT_NEAR(digamma(0.5), -1.9635100260214235, 1e-15);
  EXPECT_NEAR(digamma(-1.5), 0.70315664064524319, 1e-14);
  EXPECT_NEAR(digamma(100.0), 4.6001618527380874, 1e-14);
  EXPECT_TRUE(std::isnan(digamma(-2.0)) && digamma(0.0) == -kInf);
  EXPECT_NEAR(get_lane(digamma(splat16(1.0f)), 4), -0.57721566f, 1e-7);
  EXPECT_NEAR(get_lane(erfinv(splat16(0.5f)), 4), 0.476936276f, 1e-7);
}

// ---- memory ----

template <class T, class Raw, class Widen, class Narrow>
void check_narrow_float(Widen widen, Narrow narrow, const char* name) {
  const u32 patterns = 1u << (8 * sizeof(T));
  std::vector<T> codes(patterns);
  for (u32 i = 0; i < patterns; ++i) codes[i].bits = Raw(i);
  for (u32 i = 0; i < patterns; i += 16) {
    float got[16];
    T back[16];
    lanes_of(load(&codes[i]), got);
    store(back, load(&codes[i]));
    for (u32 j = 0; j < 16; ++j) {
      ASSERT_TRUE(same(got[j], widen(Raw(i + j)))) << name << " decode " << i + j;
      ASSERT_TRUE(same(load1(&codes[i + j]), widen(Raw(i + j)))) << name << " decode " << i + j;
      if (got[j] == got[j]) {
        ASSERT_EQ(back[j].bits, Raw(i + j)) << name;
      }
    }
  }
  std::vector<float> values;
  for (u32 i = 0; i < patterns; ++i) {  // every value, every tie and its two neighbours
    const float here = widen(Raw(i)), next = widen(Raw(i + 1));
    if (!std::isfinite(here) || !std::isfinite(next)) continue;
    const float tie = float((double(here) + double(next)) / 2);
    for (float x : {here, tie, std::nextafterf(tie, kInf), std::nextafterf(tie, -kInf)}) {
      values.push_back(x);
    }
  }
  for (float x : interesting<float>()) values.push_back(x);
  while (values.size() % 16) values.push_back(1.0f);
  for (size_t i = 0; i < values.size(); i += 16) {
    T got[16];
    store(got, load(&values[i]));
    for (int j = 0; j < 16; ++j) {
      const float x = values[i + j];
      T one;
      store1(&one, x);
      if (x != x) {
        ASSERT_TRUE(std::isnan(widen(got[j].bits)) && std::isnan(widen(one.bits))) << name;
      } else {
        ASSERT_EQ(got[j].bits, narrow(x)) << name << " encode " << x;
        ASSERT_EQ(one.bits, narrow(x)) << name << " encode " << x;
        ASSERT_TRUE(same(get_lane(cast<T>(splat16(x)), 2), widen(narrow(x)))) << name;
      }
    }
  }
}

PRELUDE_TEST(NarrowFloatsMatchTheScalarConversions) {
  check_narrow_float<f16, u16>(coil::f16_to_f32, coil::f32_to_f16, "f16");
  check_narrow_float<bf16, u16>(coil::bf16_to_f32, coil::f32_to_bf16, "bf16");
  check_narrow_float<f8e4m3fn, u8>(coil::f8e4m3fn_to_f32, coil::f32_to_f8e4m3fn, "f8e4m3fn");
  check_narrow_float<f8e5m2, u8>(coil::f8e5m2_to_f32, coil::f32_to_f8e5m2, "f8e5m2");
}

template <class T>
void check_memory() {
  std::vector<T> data(80);
  for (int i = 0; i < 80; ++i) data[i] = T(i + 1);
  for (i64 n = 0; n <= 16; ++n) {
    std::vector<T> exact(data.begin(), data.begin() + n);  // so that ASan sees a read too far
    exact.shrink_to_fit();
    T got[16];
    lanes_of(load_n(exact.data(), n), got);
    for (int i = 0; i < 16; ++i) ASSERT_EQ(got[i], i < n ? data[i] : T(0));
    lanes_of(load_strided_n(data.data(), 3, n), got);
    for (int i = 0; i < 16; ++i) ASSERT_EQ(got[i], i < n ? data[3 * i] : T(0));
    std::vector<T> out(64, T(99));
    store_n(out.data() + 1, load(data.data()), n);
    for (int i = 0; i < 18; ++i) ASSERT_EQ(out[i], i >= 1 && i <= n ? data[i - 1] : T(99));
    out.assign(64, T(99));
    store_strided_n(out.data(), 3, load(data.data()), n);
    for (int i = 0; i < 48; ++i) ASSERT_EQ(out[i], i % 3 == 0 && i / 3 < n ? data[i / 3] : T(99));
  }
  T got[16];
  lanes_of(load_strided(data.data() + 75, -5), got);
  for (int i = 0; i < 16; ++i) ASSERT_EQ(got[i], data[75 - 5 * i]);
  lanes_of(load_strided(data.data() + 7, 0), got);
  for (int i = 0; i < 16; ++i) ASSERT_EQ(got[i], data[7]);
  mask16 odd = ne(bit_and(iota16(0), splat16(i64(1))), splat16(i64(0)));
  i64x16 index = mul(iota16(0), splat16(i64(4)));
  lanes_of(gather(data.data(), index, odd), got);
  for (int i = 0; i < 16; ++i) ASSERT_EQ(got[i], i % 2 ? data[4 * i] : T(0));
  lanes_of(gather(data.data(), index), got);
  for (int i = 0; i < 16; ++i) ASSERT_EQ(got[i], data[4 * i]);
  lanes_of(load_mask(data.data(), odd), got);
  for (int i = 0; i < 16; ++i) ASSERT_EQ(got[i], i % 2 ? data[i] : T(0));
  std::vector<T> out(64, T(99));
  store_mask(out.data(), load(data.data()), odd);
  for (int i = 0; i < 18; ++i) ASSERT_EQ(out[i], i % 2 && i < 16 ? data[i] : T(99));
  out.assign(64, T(99));
  scatter(out.data(), index, load(data.data()), odd);
  for (int i = 0; i < 64; ++i) ASSERT_EQ(out[i], i % 8 == 4 ? data[i / 4] : T(99));
  store1(out.data(), T(5));
  EXPECT_EQ(load1(out.data()), T(5));
  EXPECT_EQ(fold(load(data.data()), [](auto a, auto b) { return add(a, b); }), T(136));
}
PRELUDE_TEST(MemoryOfEveryElementSize) {
  check_memory<i8>();
  check_memory<u8>();
  check_memory<i16>();
  check_memory<u16>();
  check_memory<i32>();
  check_memory<u32>();
  check_memory<i64>();
  check_memory<u64>();
  check_memory<f32>();
  check_memory<f64>();
}

PRELUDE_TEST(NarrowAndBoolMemoryInPieces) {
  b8 bools[16];
  for (int i = 0; i < 16; ++i) bools[i].v = u8(i % 3 == 0);
  bool got[16];
  to_array(load(bools), got);
  for (int i = 0; i < 16; ++i) ASSERT_EQ(got[i], i % 3 == 0);
  mask16 m = bit_not(load(bools));
  store_n(bools, m, 5);
  for (int i = 0; i < 16; ++i) ASSERT_EQ(bools[i].v, i < 5 ? i % 3 != 0 : i % 3 == 0);
  EXPECT_TRUE(any(m) && !all(m) && all(splat16(true)) && !any(splat16(false)));
  store(bools, gt(iota16(0), splat16(i64(7))));
  EXPECT_EQ(bools[7].v, 0);
  EXPECT_EQ(bools[8].v, 1);
  EXPECT_TRUE(load1(&bools[8]));
  bf16 narrow[16];
  for (int i = 0; i < 16; ++i) store1(&narrow[i], float(i));
  float lanes[16];
  lanes_of(load_n(narrow, 7), lanes);
  for (int i = 0; i < 16; ++i) ASSERT_EQ(lanes[i], i < 7 ? i : 0);
  store_strided_n(narrow, 2, splat16(100.0f), 3);
  lanes_of(load_strided(narrow, 1), lanes);
  for (int i = 0; i < 16; ++i) ASSERT_EQ(lanes[i], i < 6 && i % 2 == 0 ? 100 : i);
}

PRELUDE_TEST(MasksSelectAndCombineAcrossWidths) {
  f32x16 x = cast<f32>(iota16(0));
  auto narrow = lt(cast<i8>(iota16(0)), splat16(i8(4)));
  auto wide = gt(cast<f64>(iota16(0)), splat16(1.0));
  float got[16];
  lanes_of(where(bit_and(narrow, wide), x, neg(x)), got);
  for (int i = 0; i < 16; ++i) ASSERT_EQ(got[i], i > 1 && i < 4 ? i : -i);
  i64 counts[16];
  to_array(cast<i64>(bit_xor(wide, narrow)), counts);
  for (int i = 0; i < 16; ++i) ASSERT_EQ(counts[i], (i > 1) != (i < 4));
  EXPECT_EQ(get_lane(where(narrow, wide, narrow), 1), false);
  EXPECT_EQ(fold(narrow, [](auto a, auto b) { return bit_or(a, b); }), true);
  EXPECT_EQ(where(true, 1.0f, 2.0f), 1.0f);
  EXPECT_EQ(add(true, true), true);
}

PRELUDE_TEST(FoldTakesLaneIWithLaneIPlus8) {
  float values[16];
  for (int i = 0; i < 16; ++i) values[i] = i ? 1.0f / i : 1e8f;
  float want[16];
  std::copy(values, values + 16, want);
  for (int half = 8; half; half /= 2) {
    for (int i = 0; i < half; ++i) want[i] = want[i] + want[i + half];
  }
  EXPECT_EQ(fold(load(values), [](auto a, auto b) { return add(a, b); }), want[0]);
}

}  // namespace
}  // namespace COIL_KERNEL_NAMESPACE
