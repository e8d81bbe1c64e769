#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <filesystem>

#include "import/npz.h"

namespace coil {
namespace {

Bytes bytes_of(const std::string& text) {
  auto owner = std::make_shared<std::vector<std::byte>>(text.size());
  if (text.size() > 0) std::memcpy(owner->data(), text.data(), text.size());
  return Bytes{owner->data(), static_cast<i64>(text.size()), owner};
}

/// A .npy file of version 1 with this header and data.
std::string npy(std::string header, const std::string& data) {
  header += '\n';
  std::string out = "\x93NUMPY";
  out += '\x01';
  out += '\x00';
  out += static_cast<char>(header.size() & 0xff);
  out += static_cast<char>(header.size() >> 8);
  return out + header + data;
}

template <class T>
std::string raw(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

template <class T>
std::vector<T> elements(const NpyArray& array) {
  std::vector<T> out(static_cast<std::size_t>(array.bytes) / sizeof(T));
  std::memcpy(out.data(), array.data, out.size() * sizeof(T));
  return out;
}

std::string temporary(const std::string& name) {
  return (std::filesystem::temp_directory_path() / str("coil_{}_{}", ::getpid(), name)).string();
}

TEST(ImportNpz, ReadsRowAndColumnMajor) {
  const std::string data = raw<float>({1, 2, 3, 4, 5, 6});
  const auto c = read_npy(
      bytes_of(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", data)), "c");
  ASSERT_TRUE(c.ok()) << c.error().message;
  EXPECT_EQ(c->dtype, DType::f32);
  EXPECT_EQ(c->shape, (std::vector<i64>{2, 3}));
  EXPECT_EQ(elements<float>(*c), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  const auto f = read_npy(
      bytes_of(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", data)), "f");
  ASSERT_TRUE(f.ok()) << f.error().message;
  EXPECT_EQ(elements<float>(*f), (std::vector<float>{1, 3, 5, 2, 4, 6}));
}

TEST(ImportNpz, ReadsNoDimsAndNoElements) {
  const auto one = read_npy(
      bytes_of(npy("{'descr': '<i8', 'fortran_order': False, 'shape': (), }", raw<i64>({7}))), "n");
  ASSERT_TRUE(one.ok()) << one.error().message;
  EXPECT_TRUE(one->shape.empty());
  EXPECT_EQ(elements<i64>(*one), std::vector<i64>{7});
  const auto none = read_npy(
      bytes_of(
          npy("{'descr': '|b1', 'fortran_order': False, 'shape': (0, 9223372036854775807)}", "")),
      "n");
  ASSERT_TRUE(none.ok()) << none.error().message;
  EXPECT_EQ(none->bytes, 0);
}

TEST(ImportNpz, RefusesWhatIsNoPlainArray) {
  const char* headers[] = {
      "{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }",
      "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
      "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }",
      "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }",
      "{'descr': '<f4', 'fortran_order': False, }",
      "{'descr': '<f4', 'fortran_order': maybe, 'shape': (1,), }",
      "{'descr': '<f4'",
      "",
  };
  for (const char* header : headers)
    EXPECT_FALSE(read_npy(bytes_of(npy(header, "1234")), "a").ok()) << header;
  const std::string whole =
      npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", "1234");
  ASSERT_TRUE(read_npy(bytes_of(whole), "a").ok());
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(read_npy(bytes_of(whole.substr(0, size)), "a").ok()) << size;
}

TEST(ImportNpz, WritesWhatItReads) {
  const std::vector<float> values = {1.5f, -2, 3};
  const std::vector<u16> bits = {0x3f80, 0x7fc0};
  std::vector<NpyArray> arrays(3);
  arrays[0] = {"x", DType::f32, {3, 1}, reinterpret_cast<const std::byte*>(values.data()),
               12,  nullptr};
  arrays[1] = {"in0_bf16", DType::bf16, {2}, reinterpret_cast<const std::byte*>(bits.data()),
               4,          nullptr};
  arrays[2] = {"empty", DType::i64, {0, 2}, nullptr, 0, nullptr};
  const std::string path = temporary("round.npz");
  const Status written = write_npz(path, arrays);
  ASSERT_TRUE(written.ok()) << written.error().message;
  const auto read = read_npz(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_EQ(read->size(), 3u);  // sorted by name: empty, in0_bf16, x
  EXPECT_EQ((*read)[0].shape, (std::vector<i64>{0, 2}));
  EXPECT_EQ((*read)[1].dtype, DType::u16);
  EXPECT_EQ(elements<u16>((*read)[1]), bits);
  EXPECT_EQ((*read)[2].name, "x");
  EXPECT_EQ(elements<float>((*read)[2]), values);
}

TEST(ImportNpz, AFullDiskIsAnErrorAndLeavesNothing) {
  // A limit on the size of files stands in for a full disk: writing fails half-way.
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit small = before;
  small.rlim_cur = 4096;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::vector<float> values(100000, 1.0f);
  const NpyArray array{"x",      DType::f32,
                       {100000}, reinterpret_cast<const std::byte*>(values.data()),
                       400000,   nullptr};
  const std::string folder = temporary("full");
  std::filesystem::create_directory(folder);
  const Status written = write_npz(folder + "/x.npz", std::span(&array, 1));
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, old_handler);
  EXPECT_FALSE(written.ok());
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove_all(folder);
  EXPECT_FALSE(write_npz(folder + "/x.npz", {}).ok());  // no such folder
}

TEST(ImportNpz, ReadsTheFixtures) {
  const std::string path = str("{}/tests/fixtures/2.15.0/index_mix.npz", COIL_SOURCE_DIR);
  const auto arrays = read_npz(path);
  ASSERT_TRUE(arrays.ok()) << arrays.error().message;
  EXPECT_EQ(arrays->size(), 9u);
  EXPECT_EQ((*arrays)[0].name, "in0");
  EXPECT_EQ((*arrays)[0].shape, (std::vector<i64>{6, 9}));
}

}  // namespace
}  // namespace coil
