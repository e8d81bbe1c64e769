#pragma once
// Makes a program that shows a fault smaller, as long as it shows it.

#include <functional>
#include <string>

namespace coil::shrink_program {

/// Drops outputs, bodies, nodes, stores and instructions of the program while `fails` holds for its
/// text. What a dropped step made becomes an input.
std::string shrink(const std::string& text, const std::function<bool(const std::string&)>& fails);

}  // namespace coil::shrink_program
