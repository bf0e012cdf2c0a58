class FillSlug < ActiveRecord::Migration[6.1]
  def up
    execute "UPDATE photos SET slug = lower(caption) WHERE slug IS NULL"
  end

  def down; end
end
