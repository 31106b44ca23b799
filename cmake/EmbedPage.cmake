# cmake -DOUTPUT=FILE -DPAGE=page.html -DSTYLE=page.css -DSCRIPTS=a.js,b.js -P EmbedPage.cmake: the source of
# penstock::cli::page_before_data() and page_after_data(), in which the page's style and script stand, with their hashes
# in its Content-Security-Policy.

cmake_minimum_required(VERSION 3.22)  # @NAME@ is text

# The base64 text of 64 hexadecimal digits.
function(base64_of hex out)
  set(alphabet "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  set(text)
  foreach(at RANGE 0 60 6)
    string(SUBSTRING "${hex}00" ${at} 6 digits)
    foreach(shift IN ITEMS 18 12 6 0)
      math(EXPR place "(0x${digits} >> ${shift}) & 63")
      string(SUBSTRING "${alphabet}" ${place} 1 letter)
      string(APPEND text "${letter}")
    endforeach()
  endforeach()
  string(SUBSTRING "${text}" 0 43 text)
  set(${out} "${text}=" PARENT_SCOPE)
endfunction()

file(READ "${PAGE}" page)
file(READ "${STYLE}" style)
set(script)
string(REPLACE "," ";" SCRIPTS "${SCRIPTS}")
foreach(part IN LISTS SCRIPTS)
  file(READ "${part}" text)
  string(APPEND script "${text}")
endforeach()
string(SHA256 style_digest "${style}")
string(SHA256 script_digest "${script}")
base64_of("${style_digest}" style_hash)
base64_of("${script_digest}" script_hash)
string(REPLACE "@STYLE_HASH@" "sha256-${style_hash}" page "${page}")
string(REPLACE "@SCRIPT_HASH@" "sha256-${script_hash}" page "${page}")
string(REPLACE "@STYLE@" "${style}" page "${page}")
string(REPLACE "@SCRIPT@" "${script}" page "${page}")
string(REPLACE "@DATA@" ")PAGE\"; }\nstd::string_view page_after_data() noexcept { return R\"PAGE(" page "${page}")
# Compilers need not take literals of this length, but all do.
file(WRITE "${OUTPUT}" "#include \"cli/report/page.h\"

#pragma GCC diagnostic ignored \"-Woverlength-strings\"

namespace penstock::cli {

std::string_view page_before_data() noexcept { return R\"PAGE(${page})PAGE\"; }

}  // namespace penstock::cli
")
