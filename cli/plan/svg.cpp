#include "plan/svg.h"

namespace
{

/* Names of schemas and servers may have any character. Control characters cannot be written in XML
 * 1.0, also not as a reference. */
std::string escaped(const std::string& text)
{
    std::string escaped;
    for (const char c : text)
        escaped += c == '&'                             ? "&amp;"
                   : c == '<'                           ? "&lt;"
                   : c == '>'                           ? "&gt;"
                   : c == '"'                           ? "&quot;"
                   : static_cast<unsigned char>(c) < 32 ? "?"
                                                        : std::string(1, c);
    return escaped;
}

} // namespace

void Svg::text(int x, int y, const std::string& kind, const std::string& text)
{
    body_ << "<text x=\"" << x << "\" y=\"" << y << "\" class=\"" << kind << "\">" << escaped(text)
          << "</text>\n";
}

void Svg::rect(int x, int y, int width, int height, const std::string& kind,
               const std::string& title)
{
    body_ << "<rect x=\"" << x << "\" y=\"" << y << "\" width=\"" << width << "\" height=\""
          << height << "\" class=\"" << kind << "\""
          << (title.empty() ? "/>\n" : "><title>" + escaped(title) + "</title></rect>\n");
}

std::string Svg::document(int width, int height, const std::string& style) const
{
    const std::string size =
        "width=\"" + std::to_string(width) + "\" height=\"" + std::to_string(height) + "\"";
    return R"(<svg xmlns="http://www.w3.org/2000/svg" )" + size + " viewBox=\"0 0 " +
           std::to_string(width) + " " + std::to_string(height) + "\">\n<style>\n" + style +
           "</style>\n<rect " + size + " rx=\"8\" fill=\"#ffffff\"/>\n" + body_.str() + "</svg>\n";
}
