class AddSlug < ActiveRecord::Migration[6.1]
  def change
    add_column :photos, :slug, :text
  end
end
