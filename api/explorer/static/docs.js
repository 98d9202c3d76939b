// Paths are plain text rather than links in buttons, which screen readers miss; clicks still
// set the URL.
const plain = (link, {React}) => ({text}) => React.createElement("span", {}, text);
SwaggerUIBundle({
  url: "/openapi.json",
  dom_id: "#ui",
  deepLinking: true,
  docExpansion: "none",
  plugins: [{wrapComponents: {DeepLink: plain}}],
});
