// Pictures of gnuplot in half their bytes.
#pragma once

#include <string>

namespace tw::report {

// The picture without what no eye sees: points of curves and areas that lie on the line between their neighbours (to a
// fifth of a pixel), further digits, groups that hold nothing, attributes that are defaults, markers that nothing uses.
std::string light_svg(const std::string& svg);

}  // namespace tw::report
