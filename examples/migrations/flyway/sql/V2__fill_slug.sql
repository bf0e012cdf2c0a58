UPDATE photos SET slug = lower(caption) WHERE slug IS NULL;
