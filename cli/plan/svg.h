/* An SVG document: rectangles and texts. */

#pragma once

#include <sstream>
#include <string>

class Svg
{
public:
    /* kind: classes of the style. */
    void text(int x, int y, const std::string& kind, const std::string& text);
    /* title: a browser shows it under the pointer. */
    void rect(int x, int y, int width, int height, const std::string& kind,
              const std::string& title = "");
    /* The document has a background of its own, which looks the same on a white page and on a dark
     * one. */
    std::string document(int width, int height, const std::string& style) const;

private:
    std::ostringstream body_;
};
